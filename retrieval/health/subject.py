"""What the checks look at, fetched once for all of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from retrieval.documents import document, embeddable
from retrieval.embedders import Embedder, SearchOff, get_embedder, model_key
from retrieval.index import Index, Unavailable, profile_of, usable_index
from retrieval.models import SearchProfile

SAMPLE = 300

FIRST = """
    SELECT ticket_id FROM retrieval_ticketembedding
    WHERE model = %(model)s AND embedding IS NOT NULL ORDER BY ticket_id LIMIT %(most)s"""

# By random points on the line of ids: the cost is that of the sample, however many rows there are.
SOMEWHERE = """
    WITH ends AS (
        SELECT min(ticket_id) AS low, max(ticket_id) AS high
        FROM retrieval_ticketembedding WHERE model = %(model)s
    ), points AS (
        SELECT low + (random() * (high - low))::bigint AS point FROM ends, generate_series(1, %(most)s)
    )
    SELECT DISTINCT near.ticket_id FROM points CROSS JOIN LATERAL (
        SELECT ticket_id FROM retrieval_ticketembedding
        WHERE model = %(model)s AND ticket_id >= point AND embedding IS NOT NULL
        ORDER BY ticket_id LIMIT 1
    ) AS near"""

ROWS = """
    SELECT e.ticket_id, t.title, t.description, t.content_hash, e.content_hash,
        t.updated_at > e.updated_at, e.embedding::real[], e.embedded_chars, e.total_chars
    FROM retrieval_ticketembedding e JOIN tickets_ticket t ON t.id = e.ticket_id
    WHERE e.model = %(model)s AND e.ticket_id = ANY(%(ids)s) ORDER BY e.ticket_id"""


@dataclass(frozen=True, slots=True)
class Row:
    """A stored vector (d,) with its ticket. `touched`: the ticket was changed after the vector was made."""

    ticket_id: int
    title: str
    description: str
    ticket_hash: bytes
    row_hash: bytes
    touched: bool
    vector: NDArray[np.float32]
    embedded_chars: int
    total_chars: int

    @property
    def text(self) -> str:
        return document(self.title, self.description)

    @property
    def true_hash(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()

    @property
    def is_shortened(self) -> bool:
        return 0 < self.embedded_chars < self.total_chars


class Subject:
    """The configured model, its index and a sample of its rows."""

    @cached_property
    def off(self) -> SearchOff | None:
        """Why search by meaning is switched off, if it is."""
        try:
            get_embedder()
        except SearchOff as off:
            return off
        return None

    @cached_property
    def embedder(self) -> Embedder:
        return get_embedder()

    @cached_property
    def model(self) -> str:
        return model_key(self.embedder)

    @cached_property
    def profile(self) -> SearchProfile:
        return profile_of(self.model)

    @cached_property
    def index(self) -> Index:
        """Raises Unavailable."""
        return usable_index()

    @cached_property
    def has_index(self) -> bool:
        if self.off:
            return False
        try:
            return bool(self.index)
        except Unavailable:
            return False

    @cached_property
    def rows(self) -> list[Row]:
        """A sample of the vectors that searches compare with; all of them where they are few."""
        if not self.has_index:
            return []
        with connection.cursor() as cursor:
            cursor.execute(FIRST, {"model": self.index.model, "most": SAMPLE + 1})
            ids = [row[0] for row in cursor.fetchall()]
            if len(ids) > SAMPLE:
                cursor.execute(SOMEWHERE, {"model": self.index.model, "most": SAMPLE})
                ids = [row[0] for row in cursor.fetchall()]
            cursor.execute(ROWS, {"model": self.index.model, "ids": ids})
            return [_row(values) for values in cursor.fetchall()]

    def embedded_text(self, row: Row) -> str:
        """What the provider got of a ticket, without the differences that a model may not see."""
        embedder = self.index.embedder
        text = embeddable(row.title, row.description, embedder.window_bytes, dilutes=embedder.dilutes).text
        return "".join(filter(str.isalnum, text.casefold()))


def _row(values: tuple[Any, ...]) -> Row:
    ticket_id, title, description, ticket_hash, row_hash, touched, vector, *chars = values
    unit = np.asarray(vector, dtype=np.float32)
    return Row(ticket_id, title, description, bytes(ticket_hash), bytes(row_hash), touched, unit, *chars)
