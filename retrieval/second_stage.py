"""The opt-in second stage: an approximate index over the vectors of one model, and proof of what it costs in
recall.

Exact search needs no tuning and is fast enough for most; from a few hundred thousand tickets on an HNSW index
is worth its memory. A search uses it as soon as its measured recall is good, without another change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from .models import IndexState

HNSW = "hnsw"
# With pgvector's default of 64 for EF_CONSTRUCTION, recall at a million tickets stays at .98 however many
# candidates a search takes: docs/scaling.md.
M, EF_CONSTRUCTION = 16, 128
EF_SEARCH = 200
TOP = 10
# Below this an index hides too much: it is kept for a look at it, but searches stay exact.
LEAST_RECALL = 0.95
SAMPLE, SMALL_SAMPLE, SMALL_FROM = 200, 50, 300_000
MOST_MEMORY_MB = 2_000
# What the graph takes of it for each ticket beside the vector: neighbours with their distances, and a header.
GRAPH_BYTES = 700

STATUS = """
    SELECT i.indisvalid, pg_relation_size(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = %s"""

QUERIES = """
    SELECT ticket_id, embedding::text FROM retrieval_ticketembedding
    WHERE model = %s AND embedding IS NOT NULL ORDER BY random() LIMIT %s"""

EXACT = """
    SELECT -(embedding <#> %(vector)s::halfvec) AS cosine FROM retrieval_ticketembedding
    WHERE model = %(model)s AND embedding IS NOT NULL ORDER BY 1 DESC LIMIT %(top)s"""

APPROXIMATE = """
    SELECT -({column} <#> %(vector)s::{type}) FROM retrieval_ticketembedding
    WHERE model = %(model)s AND embedding IS NOT NULL
    ORDER BY {column} <#> %(vector)s::{type} LIMIT %(top)s"""

# Inside a larger transaction SET LOCAL would last until its end.
UNSET = """
    SET LOCAL enable_seqscan = DEFAULT; SET LOCAL enable_hashjoin = DEFAULT;
    SET LOCAL enable_mergejoin = DEFAULT; SET LOCAL jit = DEFAULT"""


class NoSuchModel(Exception):
    """No vectors of that model are stored."""


@dataclass(frozen=True, slots=True)
class Status:
    """Whether the index of a model exists and is whole, its size in bytes and its measured recall."""

    exists: bool
    valid: bool
    size: int
    state: IndexState


def dimensions_of(model: str) -> int:
    return int(model.rpartition(":")[2])


def index_name(model: str) -> str:
    return f"embedding_hnsw_{hashlib.sha256(model.encode()).hexdigest()[:12]}"


def column_of(model: str) -> tuple[str, str]:
    """The indexed expression and its type: the column holds vectors of any dimension, an index of one."""
    kind = f"halfvec({dimensions_of(model)})"
    return f"(embedding::{kind})", kind


def scan_settings(model: str) -> str:
    """What a search through the index needs: many candidates, and going on until the filters are met."""
    return (
        f"SET LOCAL hnsw.ef_search = {EF_SEARCH}; SET LOCAL hnsw.iterative_scan = relaxed_order; "
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; "
    )


def status(model: str) -> Status:
    """Raises NoSuchModel."""
    state = IndexState.objects.filter(pk=model).first()
    if state is None:
        raise NoSuchModel(model)
    with connection.cursor() as cursor:
        cursor.execute(STATUS, [index_name(model)])
        row = cursor.fetchone()
    return Status(row is not None, bool(row and row[0]), row[1] if row else 0, state)


def create(model: str) -> float:
    """Builds the index while everything goes on, measures its recall and, if that is good, lets searches use
    it.

    Answers the recall. Raises NoSuchModel.
    """
    found = status(model)
    if found.exists and not found.valid:
        drop(model)  # the remains of a build that was interrupted
    if not found.valid:
        _build(model, found.state.indexed)
    return measure(model)


def _build(model: str, rows: int) -> None:
    column, _ = column_of(model)
    # The graph is built in memory if it fits there; on disk it takes many times as long.
    memory = min(MOST_MEMORY_MB, 64 + rows * (dimensions_of(model) * 2 + GRAPH_BYTES) // 1_000_000)
    with connection.cursor() as cursor:
        cursor.execute(f"SET maintenance_work_mem = '{memory}MB'")
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY {index_name(model)} ON retrieval_ticketembedding"
            f" USING hnsw ({column} halfvec_ip_ops) WITH (m = {M}, ef_construction = {EF_CONSTRUCTION})"
            " WHERE model = %s AND embedding IS NOT NULL",
            [model],
        )
        cursor.execute("RESET maintenance_work_mem")


def drop(model: str) -> None:
    """Searches are exact again; harmless without an index."""
    IndexState.objects.filter(pk=model).update(second_stage="", recall=None, recall_measured_at=None)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model)}")


def measure(model: str) -> float:
    """The share of the exact top 10 that the index finds too, over a sample of the stored vectors; kept in
    the state.
    """
    state = IndexState.objects.get(pk=model)
    recall = agreement(model, SMALL_SAMPLE if state.indexed > SMALL_FROM else SAMPLE)
    IndexState.objects.filter(pk=model).update(
        second_stage=HNSW if recall >= LEAST_RECALL else "", recall=recall, recall_measured_at=timezone.now()
    )
    return recall


def agreement(model: str, sample: int) -> float:
    """The share of the exact top 10 that the index finds too, over so many of the stored vectors."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(QUERIES, [model, sample])
        queries = [vector for _, vector in cursor.fetchall()]
        truths = [_cosines(cursor, EXACT, model, vector) for vector in queries]
        cursor.execute(scan_settings(model))
        column, kind = column_of(model)
        statement = APPROXIMATE.format(column=column, type=kind)
        answers = [_cosines(cursor, statement, model, vector) for vector in queries]
        cursor.execute(UNSET)
    return float(np.mean([_share(answer, truth) for answer, truth in zip(answers, truths, strict=True)]))


def _cosines(cursor: Any, statement: str, model: str, vector: str) -> list[float]:
    cursor.execute(statement, {"model": model, "vector": vector, "top": TOP})
    return [row[0] for row in cursor.fetchall()]


def _share(answer: list[float], truth: list[float]) -> float:
    """By cosine and not by id: of equally near tickets any will do."""
    return sum(cosine >= truth[-1] - 1e-6 for cosine in answer) / len(truth)
