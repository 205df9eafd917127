"""How good the search is, measured on labelled files: the product's own ranking beside the vectors alone.

The tickets of the file stand in temporary tables that hide the real ones for the length of a transaction,
which is rolled back: the real tickets are neither searched nor touched, and the statements are the product's.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone
from numpy.typing import NDArray

from tickets.models import Ticket
from tickets.text import clean_text

from .calibration import bounds, sample
from .candidates import collect, scope_of
from .documents import Document, embeddable, prepared
from .embedders import Embedder, model_key
from .embedding import batches
from .index import Index, profile_of
from .models import IndexState, SearchProfile, TicketEmbedding
from .ranking import RankedHit, is_worth_reading
from .search import order

Vectors = NDArray[np.float32]
# Shows how far a long loop has come: (things, label) → the same things.
Progress = Callable[[Sequence[Any], str], Iterable[Any]]

DEPTHS = (1, 5, 10)
RANKED = 100
TITLE_LENGTH = 200
EMBEDDED_AT_ONCE = 64
SCRATCH = ("tickets_ticket", "retrieval_ticketembedding")


class BadFile(ValueError):
    """The file cannot be evaluated; the text is one sentence that says where and why."""


@dataclass(frozen=True, slots=True)
class LabelledTicket:
    id: str
    lang: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """`relevant`: ids of the tickets that should be found; empty where none should."""

    lang: str
    text: str
    relevant: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A file's tickets and queries."""

    tickets: list[LabelledTicket]
    queries: list[LabelledQuery]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one way of searching made of a query: the rank of the first right ticket (None: not among the
    first 100), and whether anything at all lay above the floor.
    """

    rank: int | None
    above_floor: bool


# Reading


def read(path: Path) -> Labelled:
    """Reads `{tickets: […], queries: […]}` as JSON, or one known item a line as JSON Lines, gzipped or not.

    Raises BadFile.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} cannot be read: {_reason(error)}.") from error
    lines = ".jsonl" in path.suffixes
    try:
        data = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    except json.JSONDecodeError as error:
        raise BadFile(f"{path} is not JSON: {error.msg} in line {error.lineno}.") from error
    labelled = _known_items(data) if lines else _labelled(data)
    _check(labelled)
    return labelled


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return (error.strerror if isinstance(error, OSError) else None) or "it is damaged"


def _labelled(data: Any) -> Labelled:
    if not isinstance(data, dict):
        raise BadFile('The file must hold an object with "tickets" and "queries".')
    return Labelled(
        [_ticket(row, f"ticket {number}") for number, row in _rows(data, "tickets")],
        [_query(row, f"query {number}") for number, row in _rows(data, "queries")],
    )


def _rows(data: dict[str, Any], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = data.get(name)
    if not isinstance(rows, list) or not rows:
        raise BadFile(f'"{name}" must be a list with at least one entry.')
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise BadFile(f'Entry {number} of "{name}" is not an object.')
        yield number, row


def _ticket(row: dict[str, Any], where: str) -> LabelledTicket:
    return LabelledTicket(
        _identity(row, "id", where),
        _text(row, "lang", where),
        _text(row, "title", where),
        _text(row, "description", where),
    )


def _query(row: dict[str, Any], where: str) -> LabelledQuery:
    relevant = row.get("relevant")
    if not isinstance(relevant, list) or not all(isinstance(one, str | int) for one in relevant):
        raise BadFile(f'"relevant" of {where} must be a list of ticket ids.')
    text = _text(row, "text", where)
    if not text.strip():
        raise BadFile(f'"text" of {where} is blank.')
    kind = row.get("kind") or ("query" if relevant else "none")
    return LabelledQuery(_text(row, "lang", where), text, frozenset(map(str, relevant)), str(kind))


def _known_items(rows: Sequence[Any]) -> Labelled:
    """Issues with a translation: the original is the query, the English text the ticket."""
    tickets, queries = [], []
    for number, row in enumerate(rows, start=1):
        where = f"line {number}"
        if not isinstance(row, dict):
            raise BadFile(f"Line {number} is not an object.")
        key = _identity(row, "id", where)
        english = _text(row, "english", where)
        tickets.append(LabelledTicket(key, "en", english[:TITLE_LENGTH].rstrip(), english))
        original = _text(row, "original", where)
        queries.append(LabelledQuery(_text(row, "lang", where), original, frozenset([key]), "known-item"))
    return Labelled(tickets, queries)


def _identity(row: dict[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str | int) or value == "":
        raise BadFile(f'"{name}" of {where} must be a text or a number.')
    return str(value)


def _text(row: dict[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise BadFile(f'"{name}" of {where} must be a text.')
    return clean_text(value)


def _check(labelled: Labelled) -> None:
    if not labelled.tickets or not labelled.queries:
        raise BadFile("The file holds no tickets or no queries.")
    known = {ticket.id for ticket in labelled.tickets}
    if len(known) < len(labelled.tickets):
        raise BadFile("Two tickets have the same id.")
    for number, query in enumerate(labelled.queries, start=1):
        unknown = sorted(query.relevant - known)
        if unknown:
            raise BadFile(f'Query {number} names the ticket "{unknown[0]}", which is not in the file.')


# Measuring


def evaluate(
    labelled: Labelled, embedder: Embedder, progress: Progress = lambda things, _: things
) -> dict[str, Any]:
    """Searches for every query and answers the measures as plain data, ready for JSON.

    Raises EmbeddingError.
    """
    documents = [_document(ticket, embedder) for ticket in labelled.tickets]
    vectors = _embedded(embedder, documents, progress)
    queries = np.stack(
        [
            embedder.embed_query(_query_text(query, embedder))
            for query in progress(labelled.queries, "queries")
        ]
    )
    with scratch_tables():
        index = _fill(labelled.tickets, vectors, embedder)
        profile = _bounds_of(labelled.tickets, vectors, embedder, index.profile)
        by_search = [
            _by_search(query, vector, index, profile, labelled)
            for query, vector in progress(list(zip(labelled.queries, queries, strict=True)), "search")
        ]
    by_vectors = _by_vectors(labelled, queries, vectors, profile.floor)
    return {
        "model": index.model,
        "tickets": len(labelled.tickets),
        "vectors": measures(labelled, by_vectors),
        "search": measures(labelled, by_search),
        "floor": profile.floor,
        "weights": {"identifier": profile.identifier_weight, "words": profile.word_weight},
    }


def _document(ticket: LabelledTicket, embedder: Embedder) -> Document:
    return embeddable(ticket.title, ticket.description, embedder.window_bytes, dilutes=embedder.dilutes)


def _query_text(query: LabelledQuery, embedder: Embedder) -> str:
    return prepared(query.text, embedder.window_bytes, dilutes=embedder.dilutes)[0]


def _embedded(embedder: Embedder, documents: Sequence[Document], progress: Progress) -> Vectors:
    """(n, d); zeros for a blank text, which is like nothing."""
    vectors = np.zeros((len(documents), embedder.dimensions), dtype=np.float32)
    written = [number for number, document in enumerate(documents) if not document.is_blank]
    size = min(EMBEDDED_AT_ONCE, embedder.batch_texts)
    lots = list(batches([documents[number] for number in written], size, embedder.batch_bytes))
    for lot in progress(lots, "tickets"):
        places = [written[number] for number in lot]
        vectors[places] = embedder.embed_documents([documents[place].text for place in places])
    return vectors


@contextmanager
def scratch_tables() -> Iterator[None]:
    """Empty tables in front of the real ones of the same names, until the transaction is rolled back."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            for table in SCRATCH:
                cursor.execute(f"CREATE TEMPORARY TABLE {table} (LIKE {table} INCLUDING ALL) ON COMMIT DROP")
        yield
        transaction.set_rollback(True)


def _fill(tickets: Sequence[LabelledTicket], vectors: Vectors, embedder: Embedder) -> Index:
    """Stores tickets and vectors under the ids 1…n, and answers an index that has seen them all."""
    model = model_key(embedder)
    Ticket.objects.bulk_create(
        [_stored(number, ticket) for number, ticket in enumerate(tickets, start=1)], batch_size=500
    )
    TicketEmbedding.objects.bulk_create(
        [
            TicketEmbedding(ticket_id=number, model=model, embedding=vector.astype(np.float16).tolist())
            for number, vector in enumerate(vectors, start=1)
            if vector.any()
        ],
        batch_size=500,
    )
    with connection.cursor() as cursor:
        for table in SCRATCH:
            cursor.execute(f"ANALYZE {table}")
    state = IndexState(
        model=model,
        total=len(tickets),
        indexed=len(tickets),
        last_id=len(tickets),
        swept_at=timezone.now() + timedelta(days=1),
        completed_at=timezone.now(),
    )
    return Index(embedder, state, profile_of(model))


def _stored(number: int, ticket: LabelledTicket) -> Ticket:
    title, rest = ticket.title[:TITLE_LENGTH], ticket.title[TITLE_LENGTH:]
    description = f"{rest}\n{ticket.description}" if rest else ticket.description
    return Ticket(pk=number, title=title, description=description, reporter_id=0)


def _bounds_of(
    tickets: Sequence[LabelledTicket], vectors: Vectors, embedder: Embedder, profile: SearchProfile
) -> SearchProfile:
    """The profile with a floor taken from these tickets alone, as `calibrate_search` takes it."""
    places = [place for place in sample(len(tickets)) if vectors[place].any()]
    titles = [_title(tickets[place]) for place in places]
    profile.floor = profile.likely = None
    if len(places) > 1:
        found = bounds(np.stack([embedder.embed_query(title) for title in titles]), vectors[places])
        profile.floor, profile.likely = found.floor, found.likely
    return profile


def _title(ticket: LabelledTicket) -> str:
    return ticket.title if ticket.title.strip() else ticket.description.strip()[:TITLE_LENGTH]


def _by_search(
    query: LabelledQuery, vector: Vectors, index: Index, profile: SearchProfile, labelled: Labelled
) -> Answer:
    found = collect(query.text, vector, index, scope_of(Ticket.objects.all(), None, None))
    hits = order(query.text, found, profile, len(labelled.tickets))
    return Answer(
        _rank([labelled.tickets[hit.ticket_id - 1].id for hit in hits], query.relevant),
        any(is_worth_reading(hit, profile.floor) for hit in hits),
    )


def _by_vectors(labelled: Labelled, queries: Vectors, vectors: Vectors, floor: float | None) -> list[Answer]:
    """Exact cosines, query by query: the whole matrix of a large file would not fit into memory."""
    answers = []
    for query, vector in zip(labelled.queries, queries, strict=True):
        cosines = vectors @ vector
        nearest = np.argsort(-cosines, kind="stable")[:RANKED]
        hits = [RankedHit(int(place), 0.0, float(cosines[place]), ("meaning",), ()) for place in nearest[:1]]
        answers.append(
            Answer(
                _rank([labelled.tickets[place].id for place in nearest], query.relevant),
                any(is_worth_reading(hit, floor) for hit in hits),
            )
        )
    return answers


def _rank(ids: Sequence[str], relevant: frozenset[str]) -> int | None:
    return next((rank for rank, one in enumerate(ids[:RANKED], start=1) if one in relevant), None)


# Summing up


def measures(labelled: Labelled, answers: Sequence[Answer]) -> dict[str, Any]:
    """`{"overall": S, "by_kind": {kind: S}, "by_direction": {"de>en": S}, "none": {"queries": n, …}}`
    with a `summary()` for S.
    """
    languages = {ticket.id: ticket.lang for ticket in labelled.tickets}
    kinds: dict[str, list[int | None]] = defaultdict(list)
    directions: dict[str, list[int | None]] = defaultdict(list)
    overall: list[int | None] = []
    for query, answer in zip(labelled.queries, answers, strict=True):
        if not query.relevant:
            continue
        overall.append(answer.rank)
        kinds[query.kind].append(answer.rank)
        for language in {languages[one] for one in query.relevant}:
            directions[f"{query.lang}>{language}"].append(answer.rank)
    silent = [answer for query, answer in zip(labelled.queries, answers, strict=True) if not query.relevant]
    return {
        "overall": summary(overall),
        "by_kind": _summaries(kinds),
        "by_direction": _summaries(directions),
        "none": {"queries": len(silent), "below_floor": sum(not answer.above_floor for answer in silent)},
    }


def _summaries(groups: Mapping[str, Sequence[int | None]]) -> dict[str, dict[str, float]]:
    return {name: summary(groups[name]) for name in sorted(groups)}


def summary(ranks: Sequence[int | None]) -> dict[str, float]:
    """`{"queries": n, "recall@1": x, …, "mrr": x}` of the ranks of the first right answers (None: none)."""
    found = [rank for rank in ranks if rank is not None]
    count = len(ranks)
    recalls = {
        f"recall@{depth}": sum(rank <= depth for rank in found) / count if count else 0.0 for depth in DEPTHS
    }
    return {"queries": count, **recalls, "mrr": sum(1 / rank for rank in found) / count if count else 0.0}
