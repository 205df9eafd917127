"""How fast is a search? `python benchmarks/search.py [--sizes 10k 100k 1M] [--dimensions 512 1024] [--index]`

In one run, so that the ratios hold on a busy machine: the memory bandwidth, numpy, faiss, the vector scan
alone (`scan`), all statements that a search sends, sent without it (`sql`), and `find_similar` end to end
without the call to the provider (`search`). Milliseconds are medians.
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
import numpy as np
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tickets.querysets import UNRESOLVED

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}
K = 10
# Searches through the index that bring it into memory, where it stays while it is in use.
WARM_UP = 200


class Given:
    """A provider whose query vector was worked out before."""

    window_bytes = 100_000
    batch_texts = 1_000
    batch_bytes = 1_000_000
    remote = False
    dilutes = False

    def __init__(self, dimensions: int) -> None:
        self.name = "bench"
        self.dimensions = dimensions
        self.vector = np.zeros(dimensions, dtype=np.float32)

    def embed_documents(self, texts: Any) -> NDArray[np.float32]:
        raise NotImplementedError

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.vector


Search = Callable[[NDArray[np.float32]], Any]


def timed(queries: NDArray[np.float32], **searches: Search) -> dict[str, float]:
    """The median milliseconds of one call a query of each, after two for warming up.

    They take turns, so that what else the machine does at the time hits them all.
    """
    times: dict[str, list[float]] = {name: [] for name in searches}
    for query in [*queries[:2], *queries]:
        for name, search in searches.items():
            started = perf_counter()
            search(query)
            times[name].append((perf_counter() - started) * 1000)
    return {name: median(all_of_them[2:]) for name, all_of_them in times.items()}


def bandwidth(data: NDArray[np.float32]) -> float:
    """Milliseconds to read all vectors once."""
    times = []
    for _ in range(5):
        started = perf_counter()
        data.sum()
        times.append((perf_counter() - started) * 1000)
    return min(times)


def numpy_top(data: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.int64]:
    scores = data @ query
    best = np.argpartition(scores, -K)[-K:]
    return best[np.argsort(-scores[best])]


def faiss_index(data: NDArray[np.float32]) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(data.shape[1])
    index.add(data)
    return index


def scan_top(model: str, query: NDArray[np.float32], settings: str = "") -> list[int]:
    from retrieval.candidates import VECTOR_CANDIDATES
    from retrieval.pgvector import halfvec_text

    with connection.cursor() as cursor:
        cursor.execute(
            settings
            + "SELECT ticket_id, embedding <#> %s::halfvec AS distance FROM retrieval_ticketembedding"
            " WHERE model = %s AND embedding IS NOT NULL ORDER BY distance LIMIT %s",
            [halfvec_text(query), model, VECTOR_CANDIDATES],
        )
        while cursor.description is None:
            cursor.nextset()
        return [row[0] for row in cursor.fetchall()]


def own_sql(given: Given, queries: NDArray[np.float32]) -> dict[bytes, list[str]]:
    """What a search for each query sends to the database: state, candidates, log and tickets."""
    statements = {}
    for query in queries:
        with CaptureQueriesContext(connection) as sent:
            find(given, query)
        statements[query.tobytes()] = [one["sql"] for one in sent.captured_queries]
    return statements


def send(statements: list[str]) -> None:
    with connection.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            while cursor.nextset():
                pass
            cursor.fetchall()


def find(given: Given, query: NDArray[np.float32], **options: Any) -> list[int]:
    from retrieval.search import find_similar

    given.vector = query
    outcome = find_similar("Der Drucker reagiert nicht", user=corpus.agent(), limit=K, **options)
    return [hit.ticket.pk for hit in outcome.hits]


def recall(found: list[list[int]], truth: list[list[int]]) -> float:
    """The share of the true answers that was found; a row too few counts as one missed."""
    shares = [len(set(one) & set(other)) / len(other) for one, other in zip(found, truth, strict=True)]
    return sum(shares) / len(shares)


def fill(count: int, model: str, data: NDArray[np.float32]) -> None:
    """The corpus, unless it was kept, in the state in which the worker leaves it."""
    from retrieval.bookkeeping import count_index, mark_swept, sweep_begins
    from retrieval.second_stage import drop

    if not corpus.holds(count, model):
        drop(model)
        corpus.fill(count, model, data)
    count_index(model)
    mark_swept(model, sweep_begins())


def build_index(name: str, model: str) -> None:
    from retrieval.models import IndexState
    from retrieval.second_stage import HNSW

    if IndexState.objects.filter(pk=model, recall__isnull=False).update(second_stage=HNSW):
        return  # it was kept
    started = perf_counter()
    call_command("vector_index", "create", model=model)
    print(f"index of {name} × {model} built in {perf_counter() - started:.0f} s", flush=True)


def questions(count: int, dimensions: int) -> NDArray[np.float32]:
    """Unit vectors near the topics of the corpus, none of them a ticket's own."""
    asked = corpus.vectors(count + 200, dimensions, seed=7)[-count:]
    noise = np.random.default_rng(1).standard_normal(asked.shape).astype(np.float32)
    asked = asked + 0.3 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return np.asarray(asked / np.linalg.norm(asked, axis=1, keepdims=True))


def exact_top(
    data: NDArray[np.float32], asked: NDArray[np.float32], ids: NDArray[np.int64]
) -> list[list[int]]:
    """The true answer among these tickets in the precision that is stored. Tickets are numbered from 1 in the
    order of their vectors."""
    half = data.astype(np.float16)[ids - 1].astype(np.float32)
    return [ids[numpy_top(half, query)].tolist() for query in asked]


def measure(name: str, dimensions: int, *, with_index: bool, queries: int) -> list[dict[str, Any]]:
    from retrieval import candidates, index
    from retrieval.models import IndexState
    from tickets.models import Ticket

    count = SIZES[name]
    model = f"bench:{dimensions}"
    data = corpus.vectors(count, dimensions)
    fill(count, model, data)
    IndexState.objects.filter(pk=model).update(second_stage="")
    given = Given(dimensions)
    index.get_embedder = lambda: given  # type: ignore[assignment]
    others, asked = np.split(questions(WARM_UP + queries, dimensions), [WARM_UP])
    unresolved = Ticket.objects.unresolved().values_list("pk", flat=True)
    truth = {
        "recall": exact_top(data, asked, np.arange(1, count + 1)),
        "filtered recall": exact_top(data, asked, np.fromiter(unresolved, np.int64)),
    }
    flat = faiss_index(data)
    row: dict[str, Any] = {"tickets": name, "dim": dimensions, "stage": "exact", "memory": bandwidth(data)}
    row |= timed(
        asked, numpy=lambda query: numpy_top(data, query), faiss=lambda query: flat.search(query[None], K)
    )
    planner = candidates.scan_settings(count >= candidates.PARALLEL_FROM)
    scan = partial(scan_top, model, settings=planner)
    rows = [searched(row, given, asked, truth, scan=scan)]
    if with_index:
        build_index(name, model)
        for query in others:
            find(given, query)
        rows.append(searched({**row, "scan": rows[0]["scan"], "stage": "index"}, given, asked, truth))
    return rows


def searched(
    row: dict[str, Any],
    given: Given,
    asked: NDArray[np.float32],
    truth: dict[str, list[list[int]]],
    **beside: Search,
) -> dict[str, Any]:
    """The row with what `find_similar` takes and finds, and with what is measured beside it."""
    search, filtered = partial(find, given), partial(find, given, statuses=UNRESOLVED)
    statements = own_sql(given, asked)
    sql = lambda query: send(statements[query.tobytes()])  # noqa: E731
    row |= timed(asked, **beside, sql=sql, search=search, filtered=filtered)
    row["recall"] = recall([search(query) for query in asked], truth["recall"])
    row["filtered recall"] = recall([filtered(query) for query in asked], truth["filtered recall"])
    return ratios(row)


def ratios(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "search/scan": row["search"] / row["scan"],
        "search/sql": row["search"] / row["sql"],
        "search/numpy": row["search"] / row["numpy"],
        "search/faiss": row["search"] / row["faiss"],
        "filtered/search": row["filtered"] / row["search"],
    }


def build(name: str, dimensions: int, *, with_index: bool) -> None:
    """For a later measurement on a quiet machine."""
    model = f"bench:{dimensions}"
    fill(SIZES[name], model, corpus.vectors(SIZES[name], dimensions))
    if with_index:
        build_index(name, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["10k", "100k"])
    parser.add_argument("--dimensions", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--index", action="store_true", help="measure the opt-in second stage too")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--keep", action="store_true", help="find and leave the database BENCH_DB_NAME")
    parser.add_argument("--build", action="store_true", help="only build the corpus, and keep it")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), corpus.database(keep=options.keep or options.build):
        for name, dimensions in product(options.sizes, options.dimensions):
            if options.build:
                build(name, dimensions, with_index=options.index)
            else:
                rows += measure(name, dimensions, with_index=options.index, queries=options.queries)
                print(corpus.table(rows[-1 - options.index :]), flush=True)
    if rows:
        print("\n" + corpus.table(rows))


if __name__ == "__main__":
    main()
