"""How fast is a search? `python benchmarks/search.py [--sizes 10k 100k 1M] [--dimensions 512 1024] [--index]`

In one run, so that the ratios hold on a busy machine: the memory bandwidth, numpy, faiss, the vector SQL
alone, and `find_similar` end to end without the call to the provider. Milliseconds are medians.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import corpus
import numpy as np
from django.core.management import call_command
from django.db import connection
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}
K = 10


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


def timed(call: Callable[[NDArray[np.float32]], Any], queries: NDArray[np.float32]) -> float:
    """The median milliseconds of one call a query, after two for warming up."""
    for query in queries[:2]:
        call(query)
    times = []
    for query in queries:
        started = perf_counter()
        call(query)
        times.append((perf_counter() - started) * 1000)
    return median(times)


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


def sql_top(model: str, query: NDArray[np.float32], settings: str = "") -> list[int]:
    from retrieval.candidates import VECTOR_CANDIDATES

    with connection.cursor() as cursor:
        cursor.execute(
            settings
            + "SELECT ticket_id, embedding <#> %s::halfvec AS distance FROM retrieval_ticketembedding"
            " WHERE model = %s AND embedding IS NOT NULL ORDER BY distance LIMIT %s",
            [str(query.astype(np.float16).tolist()), model, VECTOR_CANDIDATES],
        )
        while cursor.description is None:
            cursor.nextset()
        return [row[0] for row in cursor.fetchall()]


def find(given: Given, query: NDArray[np.float32], **options: Any) -> list[int]:
    from retrieval.search import find_similar

    given.vector = query
    outcome = find_similar("Der Drucker reagiert nicht", user=corpus.agent(), limit=K, **options)
    return [hit.ticket.pk for hit in outcome.hits]


def recall(found: list[list[int]], truth: list[list[int]]) -> float:
    shares = [len(set(one) & set(other)) / len(other) for one, other in zip(found, truth, strict=True)]
    return sum(shares) / len(shares)


def measure(name: str, dimensions: int, *, with_index: bool, queries: int) -> list[dict[str, Any]]:
    from retrieval import candidates, index
    from retrieval.bookkeeping import count_index, mark_swept, sweep_begins

    count = SIZES[name]
    model = f"bench:{dimensions}"
    data = corpus.vectors(count, dimensions)
    corpus.fill(count, model, data)
    count_index(model)
    mark_swept(model, sweep_begins())
    given = Given(dimensions)
    index.get_embedder = lambda: given  # type: ignore[assignment]
    asked = corpus.vectors(queries + 200, dimensions, seed=7)[-queries:]
    noise = np.random.default_rng(1).standard_normal(asked.shape).astype(np.float32)
    asked = asked + 0.3 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    half = data.astype(np.float16).astype(np.float32)
    # Tickets are numbered from 1 in the order of their vectors.
    truth = [[int(one) + 1 for one in numpy_top(half, query)] for query in asked]
    del half
    flat = faiss_index(data)
    row: dict[str, Any] = {"tickets": name, "dim": dimensions, "stage": "exact"}
    row["memory"] = bandwidth(data)
    row["numpy"] = timed(lambda query: numpy_top(data, query), asked)
    row["faiss"] = timed(lambda query: flat.search(query[None], K), asked)
    parallel = count >= candidates.PARALLEL_FROM
    row["sql"] = timed(lambda query: sql_top(model, query, candidates.scan_settings(parallel)), asked)
    row["search"] = timed(lambda query: find(given, query), asked)
    row["filtered"] = timed(lambda query: find(given, query, statuses=["new", "open", "pending"]), asked)
    row["recall"] = recall([find(given, query) for query in asked], truth)
    rows = [ratios(row)]
    if with_index:
        started = perf_counter()
        call_command("vector_index", "create", model=model)
        print(f"index of {name} × {dimensions} built in {perf_counter() - started:.0f} s", flush=True)
        second = {**row, "stage": "index"}
        second["search"] = timed(lambda query: find(given, query), asked)
        second["filtered"] = timed(
            lambda query: find(given, query, statuses=["new", "open", "pending"]), asked
        )
        second["recall"] = recall([find(given, query) for query in asked], truth)
        rows.append(ratios(second))
        call_command("vector_index", "drop", model=model)
    return rows


def ratios(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "search/sql": row["search"] / row["sql"],
        "search/numpy": row["search"] / row["numpy"],
        "search/faiss": row["search"] / row["faiss"],
        "filtered/search": row["filtered"] / row["search"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["10k", "100k"])
    parser.add_argument("--dimensions", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--index", action="store_true", help="measure the opt-in second stage too")
    parser.add_argument("--queries", type=int, default=30)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), corpus.database():
        for name in options.sizes:
            for dimensions in options.dimensions:
                rows += measure(name, dimensions, with_index=options.index, queries=options.queries)
                print(corpus.table(rows[-1 - options.index :]), flush=True)
    print("\n" + corpus.table(rows))


if __name__ == "__main__":
    main()
