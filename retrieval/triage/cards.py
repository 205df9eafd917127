"""A similar ticket as the admin shows it: in the panel and beside the form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from retrieval.results import Band, Hit
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


def matched_by(matched: Iterable[str], identifiers: Iterable[str], similarity: float | None) -> str:
    """ "meaning (0.83) · shared identifier: nb10234 · words" """
    how = []
    if "meaning" in matched:
        how.append(_("meaning") + (f" ({similarity:.2f})" if similarity is not None else ""))
    if "identifier" in matched:
        names = list(identifiers)
        label = ngettext("shared identifier", "shared identifiers", len(names))
        how.append(f"{label}: {', '.join(names)}" if names else label)
    if "words" in matched:
        how.append(_("words"))
    return " · ".join(how)
