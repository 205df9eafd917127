"""One SQL statement that collects everything a search may show, and how much it could not see.

Its parts: the nearest vectors (exact, or through the second stage); tickets that share an identifier,
whatever their vector says; tickets that wait for a vector, by words. The filters are part of each, so that
none returns fewer rows than exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from numpy.typing import NDArray

from tickets.querysets import TicketQuerySet

from . import replica, second_stage
from .index import Index
from .pgvector import halfvec_text
from .ranking import words_help

VECTOR_CANDIDATES = 50
# Where words are compared too, more of them have a chance.
LONG_QUERY_CANDIDATES = 100
IDENTIFIER_LIMIT = 200
MOST_WAITING = 5_000
MOST_FAILED = 1_000
WORD_CANDIDATES = 50
MOST_NEW = 10_000
# From here on a second process shares the scan; below, starting it costs more than it saves.
PARALLEL_FROM = 50_000
# Filters that fewer pass than this share are searched exactly: an approximate index loses too much behind
# them.
SELECTIVE = 0.05

NEAREST = """nearest AS MATERIALIZED (
    SELECT ticket_id, {column} <#> {vector}::{type} AS distance
    FROM retrieval_ticketembedding
    WHERE model = {model} AND embedding IS NOT NULL {filters}
    ORDER BY distance
    LIMIT {limit}
)"""

SHARING = """wanted AS MATERIALIZED (
    SELECT identifier FROM unnest(text_identifiers({text})) AS identifier
), sharing AS MATERIALIZED (
    SELECT identifier, id, count(*) OVER (PARTITION BY identifier) AS frequency
    FROM wanted CROSS JOIN LATERAL (
        SELECT id FROM tickets_ticket
        WHERE (identifiers @> ARRAY[identifier]) {filters}
        LIMIT {limit} + 1
    ) AS holders
), named AS MATERIALIZED (
    SELECT identifier, id, 1::bigint AS frequency
    FROM wanted JOIN tickets_ticket ON id = substr(identifier, 2)::bigint
    WHERE identifier ~ '^#[0-9]{{1,9}}$' {filters}
)"""

SHARED = """SELECT 'identifier', s.id, {cosine}, identifier, frequency
FROM (SELECT * FROM sharing WHERE frequency <= {limit} UNION SELECT * FROM named) AS s {join}"""

COSINE = "-(e.embedding <#> %(vector)s::halfvec)"
JOIN_VECTORS = "LEFT JOIN retrieval_ticketembedding e ON e.model = %(model)s AND e.ticket_id = s.id"

WAITING = """fresh AS MATERIALIZED (
    SELECT id, content_hash, updated_at FROM tickets_ticket
    WHERE updated_at >= {since}
    ORDER BY updated_at DESC
    LIMIT {most} + 1
), waiting AS MATERIALIZED (
    SELECT id, updated_at FROM fresh
    WHERE NOT EXISTS (
        SELECT FROM retrieval_ticketembedding e
        WHERE e.model = {model} AND e.ticket_id = fresh.id AND e.content_hash = fresh.content_hash
    ) {failed}
)"""

# Only where there are any, by the worker's count: to plan it takes longer than all the rest.
FAILED = """UNION
    (SELECT t.id, t.updated_at FROM retrieval_ticketembedding e
    JOIN tickets_ticket t ON t.id = e.ticket_id AND t.content_hash = e.failed_hash
    WHERE e.model = {model} AND e.failed_hash IS NOT NULL
    LIMIT {most})"""

WAITING_WORDS = """(SELECT 'words', id, ts_rank(search_words, {words})::float8, NULL::text, 0
FROM tickets_ticket
WHERE id IN (SELECT id FROM waiting) AND search_words @@ {words} {filters}
ORDER BY 3 DESC
LIMIT {limit})"""

# The newest of those that share a word, ranked: full text orders poorly, and ranking everything costs without
# end.
ALL_WORDS = """(SELECT 'words', id, ts_rank(search_words, {words})::float8, NULL, 0
FROM (
    SELECT id, search_words FROM tickets_ticket
    WHERE search_words @@ {words} {filters}
    ORDER BY updated_at DESC
    LIMIT {most}
) AS newest
ORDER BY 3 DESC
LIMIT {limit})"""

COVERAGE = """SELECT 'coverage', count(*), extract(epoch FROM now() - min(updated_at))::float8,
    (SELECT count(*) FROM fresh)::text,
    (SELECT count(*) FROM (SELECT 1 FROM tickets_ticket WHERE id > {last_id} LIMIT {most}) AS added)
FROM waiting"""

_WORD = re.compile(r"\w{3,40}")
_PERHAPS_IDENTIFIER = re.compile(r"\d|_|[A-Z]{4}")
MOST_WORDS = 40


@dataclass(slots=True)
class Found:
    """What the statement returned. `cosines` holds every compared ticket, `shared` the rare identifiers a
    ticket shares with the text, `by_words` the tickets found by words alone."""

    cosines: dict[int, float] = field(default_factory=dict)
    shared: dict[int, list[str]] = field(default_factory=dict)
    frequencies: dict[str, int] = field(default_factory=dict)
    by_words: dict[int, float] = field(default_factory=dict)
    waiting: int = 0
    fresh: int = 0
    added: int = 0
    oldest_waiting_seconds: float | None = None

    @property
    def ids(self) -> set[int]:
        return self.cosines.keys() | self.shared.keys() | self.by_words.keys()

    def add(self, kind: str, number: int, value: float | None, text: str | None, count: int) -> None:
        if kind == "meaning":
            self.cosines[number] = value or 0.0
        elif kind == "identifier":
            self._add_shared(number, value, str(text), count)
        elif kind == "words":
            self.by_words[number] = value or 0.0
        else:
            self.waiting, self.oldest_waiting_seconds = number, value
            self.fresh, self.added = int(text or 0), count

    def _add_shared(self, ticket_id: int, cosine: float | None, identifier: str, frequency: int) -> None:
        self.shared.setdefault(ticket_id, []).append(identifier)
        self.frequencies[identifier] = frequency
        if cosine is not None:
            self.cosines.setdefault(ticket_id, cosine)


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tickets may be found: the permissions and filters of one search, as a piece of SQL over a column
    of ids.
    """

    tickets: TicketQuerySet
    exclude: tuple[int, ...]

    def filters(self, column: str, parameters: dict[str, Any]) -> str:
        """`AND …`; empty where everything may be found, so that the scan needs no join."""
        clauses = ""
        if self.exclude:
            parameters["exclude"] = list(self.exclude)
            clauses += f" AND {column} <> ALL(%(exclude)s)"
        if self.tickets.query.where:
            clauses += f" AND {column} IN ({self._subquery(parameters)})"
        return clauses

    def _subquery(self, parameters: dict[str, Any]) -> str:
        try:
            sql, values = self.tickets.order_by().values("pk").query.sql_with_params()
        except EmptyResultSet:  # a filter that nothing can pass
            return "NULL"
        names = [f"filter{number}" for number in range(len(values))]
        parameters.update(zip(names, values, strict=True))
        return sql % tuple(f"%({name})s" for name in names)


def scope_of(
    tickets: TicketQuerySet, exclude: Collection[int] | None, statuses: Collection[str] | None
) -> Scope:
    if statuses is not None:
        tickets = tickets.filter(status__in=list(statuses))
    return Scope(tickets, tuple(exclude or ()))


def collect(text: str, vector: NDArray[np.float32], index: Index, scope: Scope) -> Found:
    """Everything that a search with a vector may show."""
    if index.state.second_stage and not _is_selective(scope, index.state.total):
        found = _collect(text, vector, index, scope, approximate=True)
        if len(found.cosines) >= min(VECTOR_CANDIDATES, index.state.indexed):
            return found
        # The index gave up before the filters were satisfied.
    return _collect(text, vector, index, scope, approximate=False)


def _collect(
    text: str, vector: NDArray[np.float32], index: Index, scope: Scope, *, approximate: bool
) -> Found:
    parameters: dict[str, Any] = {
        "vector": halfvec_text(vector),
        "model": index.model,
        "since": index.state.swept_at or "-infinity",
        "last_id": index.state.last_id,
    }
    column, kind = second_stage.column_of(index.model) if approximate else ("embedding", "halfvec")
    tables = [
        NEAREST.format(
            column=column,
            type=kind,
            vector="%(vector)s",
            model="%(model)s",
            filters=scope.filters("ticket_id", parameters),
            limit=LONG_QUERY_CANDIDATES if words_help(text) else VECTOR_CANDIDATES,
        ),
        _waiting(index),
    ]
    rows = [
        "SELECT 'meaning', ticket_id, -distance, NULL::text, 0::bigint FROM nearest",
        COVERAGE.format(last_id="%(last_id)s", most=MOST_NEW),
    ]
    if may_hold_identifiers(text):
        parameters["text"] = text
        tables.append(_sharing(scope, parameters))
        rows.append(SHARED.format(cosine=COSINE, limit=IDENTIFIER_LIMIT, join=JOIN_VECTORS))
    if approximate:
        planner = second_stage.scan_settings(index.model)
    else:
        planner = scan_settings(index.state.total >= PARALLEL_FROM)
    found = _run(tables, rows, parameters, planner)
    words = word_query(text) if found.waiting else ""
    if words:
        parameters["words"] = words
        filters = scope.filters("id", parameters)
        row = WAITING_WORDS.format(words="%(words)s::tsquery", filters=filters, limit=WORD_CANDIDATES)
        _run(tables[1:2], [row], parameters, found=found)
    return found


def _waiting(index: Index) -> str:
    failed = FAILED.format(model="%(model)s", most=MOST_FAILED) if index.state.failed else ""
    return WAITING.format(since="%(since)s", model="%(model)s", most=MOST_WAITING, failed=failed)


def _is_selective(scope: Scope, total: int) -> bool:
    """Whether so few tickets pass the filters, by the planner's estimate, that the index would search in
    vain.
    """
    if not scope.tickets.query.where:
        return False
    try:
        plan = scope.tickets.order_by().values("pk").explain(format="json")
    except EmptyResultSet:
        return True
    return bool(json.loads(plan)[0]["Plan"]["Plan Rows"] < SELECTIVE * total)


def collect_without_vector(text: str, scope: Scope) -> Found:
    """What can be found where meanings cannot be compared: shared identifiers and words."""
    parameters: dict[str, Any] = {"text": text}
    rows = [SHARED.format(cosine="NULL::float8", limit=IDENTIFIER_LIMIT, join="")]
    tables = [_sharing(scope, parameters)]
    words = word_query(text)
    if words:
        parameters["words"] = words
        filters = scope.filters("id", parameters)
        rows.append(
            ALL_WORDS.format(words="%(words)s::tsquery", filters=filters, most=1_000, limit=WORD_CANDIDATES)
        )
    return _run(tables, rows, parameters)


def word_query(text: str) -> str:
    """The words of a text as a tsquery that any of them satisfies, empty without words."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return " | ".join(f"'{word}'" for word in list(words)[:MOST_WORDS])


def _sharing(scope: Scope, parameters: dict[str, Any]) -> str:
    return SHARING.format(text="%(text)s", filters=scope.filters("id", parameters), limit=IDENTIFIER_LIMIT)


def may_hold_identifiers(text: str) -> bool:
    """False where the database's `text_identifiers()` is sure to find none, which spares the plan of that
    part.
    """
    return _PERHAPS_IDENTIFIER.search(text, 0, 20_000) is not None


def _run(
    tables: Iterable[str],
    rows: Iterable[str],
    parameters: dict[str, Any],
    planner: str = "",
    found: Found | None = None,
) -> Found:
    statement = f"WITH {', '.join(tables)}\n" + "\nUNION ALL\n".join(rows)
    found = found or Found()

    def query(cursor: Any) -> list[Any]:
        cursor.execute(planner + statement, parameters)
        skip_settings(cursor)
        return list(cursor.fetchall())

    for row in replica.read(query):
        found.add(*row)
    return found


def skip_settings(cursor: Any) -> None:
    """To the rows of the statement behind the settings that were sent along with it."""
    while cursor.statusmessage == "SET":
        cursor.nextset()


def scan_settings(parallel: bool) -> str:
    """Planner settings for one exact scan; sent along with the statement, they cost no round trip."""
    processes = "SET LOCAL max_parallel_workers_per_gather = {}; "
    if not parallel:
        return processes.format(0)
    return processes.format(1) + "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; "
