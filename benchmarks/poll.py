"""What does a look cost that finds nothing to do? `python benchmarks/poll.py [--sizes 100k 1M]`

Three ways in one run, medians in milliseconds: the worker's merge of two covering indexes; comparing times,
which is blind to edits past the ORM; hashing every text in SQL.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import corpus
from django.db import connection

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}
MODEL = "bench:8"
REPEATS = 5

BY_TIME = """
    SELECT t.id FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e ON e.model = %s AND e.ticket_id = t.id
    WHERE e.id IS NULL OR t.updated_at > e.updated_at LIMIT 2000"""

BY_HASHING = """
    SELECT t.id FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e ON e.model = %s AND e.ticket_id = t.id
    WHERE e.content_hash IS DISTINCT FROM sha256(convert_to(t.title || E'\\n' || t.description, 'UTF8'))
    LIMIT 2000"""


def timed(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(REPEATS):
        started = perf_counter()
        assert not call()
        times.append((perf_counter() - started) * 1000)
    return median(times)


def rows(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [MODEL])
        return list(cursor.fetchall())


def measure(name: str) -> dict[str, Any]:
    from retrieval.queue import Queue

    corpus.fill(SIZES[name], MODEL, corpus.vectors(SIZES[name], 8))
    queue = Queue(MODEL, lease_seconds=60)
    poll = timed(lambda: queue.waiting_ids(0))
    by_time = timed(lambda: rows(BY_TIME))
    hashing = timed(lambda: rows(BY_HASHING))
    return {
        "tickets": name,
        "worker": poll,
        "by time": by_time,
        "hashing": hashing,
        "hashing/worker": hashing / poll,
        "seen": _sees_edits_past_the_orm(queue),
    }


def _sees_edits_past_the_orm(queue: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tickets_ticket SET title = title || '!' WHERE id <= 100")
    return f"{len(queue.waiting_ids(0))} of 100"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["100k"])
    with corpus.database():
        print(corpus.table([measure(name) for name in parser.parse_args().sizes]))


if __name__ == "__main__":
    main()
