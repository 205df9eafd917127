"""What workers write about themselves and about the index, for searches and the health page."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django.db import connection

from .queue import merging, stale_ids

# A transaction that began before a sweep and ends after it is invisible to it: its tickets must count as
# unseen.
UNSEEN = "60 seconds"
# The oldest of the first waiting tickets stands for the oldest of all: to look at all of them would read
# them.
SAMPLE = 1_000

COUNT_INDEX = """
    WITH counted AS (
        SELECT count(*) AS total, count(e.ticket_id) AS indexed, coalesce(max(t.id), 0) AS last_id
        FROM tickets_ticket t
        LEFT JOIN retrieval_ticketembedding e
            ON e.model = %(model)s AND e.ticket_id = t.id AND e.content_hash = t.content_hash
    ), failures AS (
        SELECT count(*) AS failed FROM retrieval_ticketembedding e
        JOIN tickets_ticket t ON t.id = e.ticket_id AND t.content_hash = e.failed_hash
        WHERE e.model = %(model)s AND e.failed_hash IS NOT NULL
    )
    INSERT INTO retrieval_indexstate AS s
        (model, total, indexed, failed, last_id, oldest_waiting_at, counted_at, second_stage)
    SELECT %(model)s, total, indexed, failed, last_id, NULL, now(), '' FROM counted, failures
    ON CONFLICT (model) DO UPDATE SET
        total = excluded.total, indexed = excluded.indexed, failed = excluded.failed,
        last_id = excluded.last_id, counted_at = excluded.counted_at
    RETURNING total > indexed"""

OLDEST = """
    UPDATE retrieval_indexstate SET
        oldest_waiting_at = (SELECT min(updated_at) FROM tickets_ticket WHERE id = ANY(%(ids)s))
    WHERE model = %(model)s"""

SWEPT = f"""
    UPDATE retrieval_indexstate SET
        swept_at = %(began)s::timestamptz - interval '{UNSEEN}', completed_at = coalesce(completed_at, now()),
        counted_at = CASE WHEN total = indexed THEN now() ELSE counted_at END
    WHERE model = %(model)s"""

BEAT = """
    INSERT INTO retrieval_workerstate
        (name, model, activity, reason_code, reason, paused_until, embedded, batches, outages, batch_seconds)
    VALUES (
        %(name)s, %(model)s, %(activity)s, %(code)s, %(reason)s,
        CASE WHEN %(pause)s > 0 THEN now() + %(pause)s * interval '1 second' END, %(embedded)s,
        %(batches)s, %(outages)s, %(batch_seconds)s
    )
    ON CONFLICT (name) DO UPDATE SET
        model = excluded.model, activity = excluded.activity, reason_code = excluded.reason_code,
        reason = excluded.reason, paused_until = excluded.paused_until, embedded = excluded.embedded,
        batches = excluded.batches, outages = excluded.outages, batch_seconds = excluded.batch_seconds,
        heartbeat_at = now()"""


def sweep_begins() -> datetime:
    """The database's time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        return cast(datetime, cursor.fetchone()[0])


def count_index(model: str) -> None:
    """Counts the tickets with a current vector of this model; notes since when the oldest other one waits."""
    with merging() as cursor:
        cursor.execute(COUNT_INDEX, {"model": model})
        (something_waits,) = cursor.fetchone()
    ids = stale_ids(model, 0, SAMPLE) if something_waits else []
    with connection.cursor() as cursor:
        cursor.execute(OLDEST, {"model": model, "ids": ids})


def mark_swept(model: str, began_at: datetime) -> None:
    """Every ticket changed before that moment has a current vector or a recorded failure."""
    with connection.cursor() as cursor:
        cursor.execute(SWEPT, {"model": model, "began": began_at})


def beat(
    name: str,
    model: str,
    activity: str,
    embedded: int,
    code: str,
    reason: str,
    pause_seconds: float,
    *,
    batches: int = 0,
    outages: int = 0,
    batch_seconds: float = 0.0,
) -> None:
    """The heartbeat of one worker, with its figures since its start and the reason while it pauses."""
    values: dict[str, Any] = {
        "name": name,
        "model": model,
        "activity": activity,
        "code": code,
        "reason": reason,
        "pause": pause_seconds,
        "embedded": embedded,
        "batches": batches,
        "outages": outages,
        "batch_seconds": batch_seconds,
    }
    with connection.cursor() as cursor:
        cursor.execute(BEAT, values)


def forget_old_workers() -> None:
    """Rows of processes that ended more than a day ago."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_workerstate WHERE heartbeat_at < now() - interval '1 day'")
