"""What waits for a vector, who works on it, and what becomes of it: the SQL of the worker.

A ticket waits when its content hash differs from the one its vector was made from; edits past the ORM are
seen as well. Work is claimed by a lease in short transactions. All times are the database's, so that the
clocks of the workers do not matter; a lease or a pause much further in the future than those that are given
out counts as over, because then the database's clock was set back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import psycopg
from django.db import IntegrityError, connection, transaction
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.types import TypeInfo

from .documents import Document, embeddable

# How many waiting tickets one look takes in. Among them the oldest need comes first.
WINDOW = 2_000
RETRY_SECONDS = (30, 180, 1_200, 3_600, 21_600)
# Tickets older than that at their first vector are not checked for duplicates.
TRIAGE_DAYS = 30

STALE = """
    SELECT t.id
    FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e ON e.model = %(model)s AND e.ticket_id = t.id
    WHERE t.id > %(after)s AND e.content_hash IS DISTINCT FROM t.content_hash
    ORDER BY t.id
    LIMIT %(most)s"""

# Left alone, the planner guesses from statistics that a bulk import or a back-fill has just made wrong, and
# may compare every ticket with every vector. So a look at all tickets is told to merge the two covering
# indexes, which reads neither table.
BY_MERGE = """
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_seqscan = off;
    SET LOCAL enable_bitmapscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off"""

# Those deleted meanwhile stay in the list: an empty one would say that nothing waits.
OLDEST_NEED_FIRST = """
    SELECT w.id FROM unnest(%(ids)s) AS w (id) LEFT JOIN tickets_ticket t ON t.id = w.id
    ORDER BY t.updated_at, w.id"""

# One worker at a time looks and takes: two would find the same tickets.
CLAIM_ALONE = """
    SET LOCAL synchronous_commit = off;
    SELECT pg_advisory_xact_lock(hashtext('embed_worker'), hashtext(%(model)s))"""

# For the same reason as above the vectors are looked up one by one: OFFSET 0 keeps the planner from joining.
# Five leases: workers of the release before, or with another --lease, may hold theirs longer than we do.
CLAIM = """
    WITH waiting AS MATERIALIZED (
        SELECT t.id,
            coalesce(
                e.claimed_until BETWEEN now() AND now() + 5 * %(lease)s * interval '1 second', false
            ) AS busy,
            coalesce(
                e.failed_hash = t.content_hash
                AND e.retry_at BETWEEN now() AND now() + 2 * %(longest)s * interval '1 second',
                false
            ) AS pausing
        FROM tickets_ticket t
        LEFT JOIN LATERAL (
            SELECT * FROM retrieval_ticketembedding WHERE model = %(model)s AND ticket_id = t.id OFFSET 0
        ) AS e ON true
        WHERE t.id = ANY(%(ids)s) AND e.content_hash IS DISTINCT FROM t.content_hash
    ), taken AS (
        INSERT INTO retrieval_ticketembedding AS e
            (ticket_id, model, claimed_until, content_hash, embedded_chars, total_chars, attempts, error)
        SELECT id, %(model)s, now() + %(lease)s * interval '1 second', '', 0, 0, 0, '' FROM waiting
        WHERE NOT busy AND NOT pausing ORDER BY id
        ON CONFLICT (model, ticket_id) DO UPDATE SET claimed_until = excluded.claimed_until
        RETURNING ticket_id
    )
    SELECT ARRAY(SELECT ticket_id FROM taken), EXISTS (SELECT FROM waiting WHERE busy)"""

READ = """
    SELECT id, content_hash, title, left(description, %(window)s),
        char_length(title) + 1 + char_length(description)
    FROM tickets_ticket WHERE id = ANY(%(ids)s) ORDER BY id"""

# Together with its first vector a ticket becomes due for the duplicate check, so that no crash can part them.
# Not due: what is solved already, and what was old when it got its vector (an import, a back-fill): nobody
# triages those as new. A ticket that was created while the search was unavailable is always due.
# Neither this nor a claim waits for the disk: what a crash of the database takes back is found and embedded
# again.
STORE = """
    WITH stored AS (
        INSERT INTO retrieval_ticketembedding
            (ticket_id, model, content_hash, embedding, embedded_chars, total_chars, attempts, error)
        SELECT t.id, %(model)s, u.hash, u.embedding, u.embedded, u.total, 0, ''
        FROM unnest(
            %(ids)b::bigint[], %(hashes)b::bytea[], %(vectors)b::halfvec[], %(embedded)b::int[],
            %(totals)b::int[]
        ) AS u (id, hash, embedding, embedded, total)
        JOIN tickets_ticket t ON t.id = u.id AND t.content_hash = u.hash
        ON CONFLICT (model, ticket_id) DO UPDATE SET
            content_hash = excluded.content_hash, embedding = excluded.embedding,
            embedded_chars = excluded.embedded_chars, total_chars = excluded.total_chars,
            attempts = 0, error = '', failed_hash = NULL, retry_at = NULL, claimed_until = NULL,
            updated_at = now()
        RETURNING ticket_id
    ), due AS (
        INSERT INTO retrieval_duplicatecheck (ticket_id)
        SELECT t.id FROM stored JOIN tickets_ticket t ON t.id = stored.ticket_id
        WHERE t.duplicate_check = 'unavailable' OR (
            t.status IN ('new', 'open', 'pending')
            AND t.created_at > now() - %(triage_days)s * interval '1 day'
        )
        ON CONFLICT DO NOTHING
    )
    SELECT ticket_id, set_config('synchronous_commit', 'off', true) FROM stored"""

FAIL = """
    UPDATE retrieval_ticketembedding e SET
        attempts = f.attempts, error = %(error)s, failed_hash = %(hash)s, claimed_until = NULL,
        updated_at = now(),
        retry_at = now() + interval '1 second'
            * (%(pauses)s::int[])[least(f.attempts, cardinality(%(pauses)s::int[]))]
    FROM (
        SELECT ticket_id, CASE WHEN failed_hash = %(hash)s THEN attempts + 1 ELSE 1 END AS attempts
        FROM retrieval_ticketembedding WHERE model = %(model)s AND ticket_id = %(id)s
    ) AS f
    WHERE e.model = %(model)s AND e.ticket_id = f.ticket_id"""

RELEASE = """
    UPDATE retrieval_ticketembedding SET claimed_until = NULL
    WHERE model = %(model)s AND ticket_id = ANY(%(ids)s) AND claimed_until IS NOT NULL"""

RENEW = """
    UPDATE retrieval_ticketembedding SET claimed_until = now() + %(lease)s * interval '1 second'
    WHERE model = %(model)s AND ticket_id = ANY(%(ids)s) AND claimed_until IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class Job:
    """One claimed ticket as it was read: its text, and the hash that names this text."""

    ticket_id: int
    content_hash: bytes
    document: Document


@dataclass(frozen=True, slots=True)
class Claim:
    """What one worker may embed now, and whether another one is at work on the rest."""

    ids: list[int]
    others_at_work: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """The tickets that wait for a vector of one model."""

    model: str
    lease_seconds: float

    def waiting_ids(self, after: int) -> list[int]:
        """The next `WINDOW` tickets above the id `after` whose vector is missing or out of date, longest
        waiting first.
        """
        ids = stale_ids(self.model, after, WINDOW)
        if not ids:
            return []
        with connection.cursor() as cursor:
            cursor.execute(OLDEST_NEED_FIRST, {"ids": ids})
            return [row[0] for row in cursor.fetchall()]

    def claim(self, ids: Sequence[int]) -> Claim:
        """Takes those of these tickets that still wait and that nobody else has."""
        values: dict[str, Any] = {
            "model": self.model,
            "ids": list(ids),
            "lease": self.lease_seconds,
            "longest": RETRY_SECONDS[-1],
        }
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(CLAIM_ALONE, values)
            cursor.execute(CLAIM, values)
            return Claim(*cursor.fetchone())

    def read(self, ids: Collection[int], window_bytes: int, *, dilutes: bool) -> list[Job]:
        """The texts of claimed tickets; those deleted meanwhile are missing."""
        with connection.cursor() as cursor:
            cursor.execute(READ, {"ids": list(ids), "window": window_bytes})
            return [
                Job(
                    pk,
                    bytes(content_hash),
                    embeddable(title, description, window_bytes, total, dilutes=dilutes),
                )
                for pk, content_hash, title, description, total in cursor.fetchall()
            ]

    def store(self, jobs: Sequence[Job], vectors: Sequence[NDArray[np.float32] | None]) -> int:
        """Writes the vectors of those tickets that still have the text that was read; the others are given
        back.

        Answers how many were written. None stands for a text that has nothing to embed.
        """
        try:
            stored = self._store(jobs, vectors)
        except IntegrityError:  # a ticket was deleted between the look at it and the end of the statement
            stored = self._store(jobs, vectors)
        self.release([job.ticket_id for job in jobs if job.ticket_id not in stored])
        return len(stored)

    def _store(self, jobs: Sequence[Job], vectors: Sequence[NDArray[np.float32] | None]) -> set[int]:
        values: dict[str, Any] = {
            "model": self.model,
            "ids": [job.ticket_id for job in jobs],
            "hashes": [job.content_hash for job in jobs],
            "vectors": [None if vector is None else HalfVector(vector) for vector in vectors],
            "embedded": [job.document.embedded_chars for job in jobs],
            "totals": [job.document.total_chars for job in jobs],
            "triage_days": TRIAGE_DAYS,
        }
        with connection.wrap_database_errors, binary_cursor() as cursor:
            return {row[0] for row in cursor.execute(STORE, values)}

    def fail(self, job: Job, error: str) -> None:
        """Records why a text has no vector, and when to try again: later each time, or when it changes."""
        values: dict[str, Any] = {
            "model": self.model,
            "id": job.ticket_id,
            "hash": job.content_hash,
            "error": error,
        }
        with connection.cursor() as cursor:
            cursor.execute(FAIL, {**values, "pauses": list(RETRY_SECONDS)})

    def release(self, ids: Sequence[int]) -> None:
        """Gives claimed tickets back."""
        if ids:
            with connection.cursor() as cursor:
                cursor.execute(RELEASE, {"model": self.model, "ids": list(ids)})

    def renew(self, ids: Sequence[int]) -> None:
        """Prolongs the lease of tickets that are still under way."""
        if ids:
            with connection.cursor() as cursor:
                cursor.execute(RENEW, {"model": self.model, "ids": list(ids), "lease": self.lease_seconds})


@contextmanager
def merging() -> Iterator[Any]:
    """A cursor in a transaction of its own that compares all tickets with their vectors in one pass."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(BY_MERGE)
        yield cursor


def stale_ids(model: str, after: int, most: int) -> list[int]:
    """The next `most` tickets above the id `after` whose vector is missing or out of date, by id."""
    with merging() as cursor:
        cursor.execute(STALE, {"model": model, "after": after, "most": most})
        return [row[0] for row in cursor.fetchall()]


def binary_cursor() -> psycopg.Cursor[Any]:
    """A cursor that sends its parameters apart from the statement and in binary, vectors included."""
    connection.ensure_connection()
    raw = cast(psycopg.Connection[Any], connection.connection)
    info = TypeInfo.fetch(raw, "halfvec") if raw.adapters.types.get("halfvec") is None else None
    if info is not None:
        register_halfvec_info(raw, info)
    return psycopg.Cursor(raw)
