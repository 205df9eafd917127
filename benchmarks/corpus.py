"""A database of its own with tickets and real-looking vectors, for the benchmarks of search and of the
worker's poll.

The vectors are clustered, as real ones are: around a few hundred topics, with most of their spread in few
directions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402

CHUNK = 20_000
# Of 39 characters each, in the description of every ticket.
SENTENCES = 8
TOPICS = 400

TICKETS = """
    INSERT INTO tickets_ticket (
        title, description, status, priority, reporter_id, source, resolution, duplicate_check, created_at,
        updated_at, version, status_before_merge
    )
    SELECT 'The printer on the second floor does not react',
        repeat('It has been switched off and on again. ', %s),
        (ARRAY['new', 'open', 'pending', 'resolved'])[least(1 + n %% 10, 4)],
        'normal', %s, 'import', '', 'not_needed', now() - interval '1 day', now() - interval '1 day', 1, ''
    FROM generate_series(1, %s) AS n"""


def vectors(count: int, dimensions: int, seed: int = 7) -> NDArray[np.float32]:
    """`count` unit vectors around `TOPICS` topics."""
    random = np.random.default_rng(seed)
    spread = (np.arange(1, dimensions + 1, dtype=np.float32) ** -0.5).astype(np.float32)
    topics = random.standard_normal((TOPICS, dimensions), dtype=np.float32) * spread
    made = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, CHUNK):
        part = made[start : start + CHUNK]
        part[:] = random.standard_normal(part.shape, dtype=np.float32) * spread * 0.8
        part += topics[random.integers(0, TOPICS, len(part))]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return made


@contextmanager
def database(*, keep: bool = False) -> Iterator[None]:
    """An empty database with the product's tables, dropped at the end; to `keep` is to find it as it was left
    and to leave it."""
    os.environ.setdefault("BENCH_DB_NAME", "test_bench")
    connection.settings_dict["TEST"]["NAME"] = os.environ["BENCH_DB_NAME"]
    old_name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False, keepdb=keep)
    try:
        yield
    finally:
        with connection.cursor() as cursor:  # threads of the product keep theirs for a while
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        connection.creation.destroy_test_db(old_name, verbosity=0, keepdb=keep)


@lru_cache(maxsize=1)
def agent() -> User:
    """A person who may see every ticket."""
    user, _ = User.objects.get_or_create(username="bench", defaults={"is_staff": True, "is_superuser": True})
    return user


def add_tickets(count: int, sentences: int = SENTENCES) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TICKETS, [sentences, agent().pk, count])


def fill(count: int, model: str, data: NDArray[np.float32], sentences: int = SENTENCES) -> None:
    """`count` tickets that all have their vector, with fresh statistics and visibility map."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE tickets_ticket, retrieval_indexstate RESTART IDENTITY CASCADE")
    add_tickets(count, sentences)
    add_vectors(model, data)
    vacuum()


def holds(count: int, model: str) -> bool:
    """Whether exactly these tickets and vectors are there already, in a database that was kept."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM tickets_ticket),"
            " (SELECT count(*) FROM retrieval_ticketembedding WHERE model = %s)",
            [model],
        )
        return bool(cursor.fetchone() == (count, count))


def add_vectors(model: str, data: NDArray[np.float32]) -> None:
    """One row a ticket, in the order of their ids."""
    from retrieval.queue import binary_cursor

    with connection.cursor() as cursor:
        cursor.execute("SELECT id, content_hash FROM tickets_ticket ORDER BY id")
        tickets = [(pk, bytes(content_hash)) for pk, content_hash in cursor.fetchall()]
    from pgvector import HalfVector

    columns = "ticket_id, model, content_hash, embedding, embedded_chars, total_chars, attempts, error"
    statement = f"COPY retrieval_ticketembedding ({columns}) FROM STDIN (FORMAT BINARY)"
    with binary_cursor() as raw, raw.copy(statement) as copy:
        copy.set_types(["int8", "varchar", "bytea", "halfvec", "int4", "int4", "int2", "text"])
        for (pk, content_hash), vector in zip(tickets, data, strict=True):
            copy.write_row((pk, model, content_hash, HalfVector(vector), 300, 300, 0, ""))


def vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) tickets_ticket")
        cursor.execute("VACUUM (ANALYZE) retrieval_ticketembedding")


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as aligned text under the names of their columns."""
    names = list(rows[0])
    cells = [names, *[[_cell(row[name]) for name in names] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells
    )


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
