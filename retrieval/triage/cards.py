"""A similar ticket as the admin shows it: in the panel and beside the form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retrieval.results import Band, Hit
from retrieval.sentences import matched_by
from tickets.models import Ticket

from .base import language_of_ticket


@dataclass(frozen=True, slots=True)
class Card:
    hit: Hit
    language: str

    @property
    def ticket(self) -> Ticket:
        return self.hit.ticket

    @property
    def is_likely(self) -> bool:
        return self.hit.band == Band.LIKELY

    @property
    def why(self) -> str:
        """How it matched, in words."""
        return matched_by(self.hit.matched, self.hit.identifiers, self.hit.similarity)


def cards_of(hits: Iterable[Hit]) -> list[Card]:
    return [Card(hit, language_of_ticket(hit.ticket)) for hit in hits]
