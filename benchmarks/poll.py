"""What does a look cost that finds nothing to do? `python benchmarks/poll.py [--sizes 100k 1M]`

Three ways in one run, medians in milliseconds: the worker's merge of two covering indexes; comparing times,
which is blind to edits past the ORM; hashing every text in SQL. Only the last depends on the length of the
texts: it is measured with brief reports and with such as come by mail.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter
from typing import Any

import corpus
from django.db import connection

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}
MODEL = "bench:8"
REPEATS = 9
SENTENCES = (8, 20)

BY_TIME = """
    SELECT t.id FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e ON e.model = %s AND e.ticket_id = t.id
    WHERE e.id IS NULL OR t.updated_at > e.updated_at LIMIT 2000"""

BY_HASHING = """
    SELECT t.id FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e ON e.model = %s AND e.ticket_id = t.id
    WHERE e.content_hash IS DISTINCT FROM sha256(convert_to(t.title || E'\\n' || t.description, 'UTF8'))
    LIMIT 2000"""


def timed(**calls: Callable[[], Any]) -> dict[str, float]:
    """The median milliseconds of each. They take turns, so that the machine's other work hits them all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS + 1):
        for name, call in calls.items():
            started = perf_counter()
            assert not call()
            times[name].append((perf_counter() - started) * 1000)
    return {name: median(all_of_them[1:]) for name, all_of_them in times.items()}


def rows(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [MODEL])
        return list(cursor.fetchall())


def measure(name: str, sentences: int) -> dict[str, Any]:
    from retrieval.queue import Queue

    corpus.fill(SIZES[name], MODEL, corpus.vectors(SIZES[name], 8), sentences)
    queue = Queue(MODEL, lease_seconds=60)
    took = timed(
        worker=partial(queue.waiting_ids, 0),
        times=partial(rows, BY_TIME),
        hashing=partial(rows, BY_HASHING),
    )
    return {
        "tickets": name,
        "characters": characters(),
        **took,
        "hashing/worker": took["hashing"] / took["worker"],
        "seen": _sees_edits_past_the_orm(queue),
    }


def characters() -> int:
    """The mean length of a ticket's text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT avg(char_length(title) + char_length(description)) FROM tickets_ticket WHERE id <= 1000"
        )
        return round(cursor.fetchone()[0])


def _sees_edits_past_the_orm(queue: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tickets_ticket SET title = title || '!' WHERE id <= 100")
    return f"{len(queue.waiting_ids(0))} of 100"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["100k"])
    with corpus.database():
        sizes = parser.parse_args().sizes
        print(corpus.table([measure(*each) for each in product(sizes, SENTENCES)]))


if __name__ == "__main__":
    main()
