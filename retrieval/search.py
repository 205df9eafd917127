"""Search by meaning: which existing tickets are like this text?

Three outcomes: found, nothing, unavailable. `nothing` is only ever said by a search that compared meanings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from tickets.models import Ticket
from tickets.permissions import Person, may_view
from tickets.text import clean_text, is_blank

from .candidates import MOST_WAITING, Found, Scope, collect, collect_without_vector, scope_of
from .documents import document, shorten
from .embedders import EmbeddingError
from .index import Index, Unavailable, counted_state, usable_index
from .interim_ranking import Candidate, RankedHit, rank, words_help
from .models import SearchLog, SearchProfile
from .results import Band, Coverage, Hit, Outcome, SearchOutcome

__all__ = ["Band", "Coverage", "Hit", "Outcome", "SearchOutcome", "find_similar"]

LONGEST_QUERY = 100_000
RANKED_CHARS = 2_000
PASSAGE_CHARS = 240


@dataclass(slots=True)
class Clock:
    """What a search spent where, in milliseconds."""

    embed_ms: float | None = None
    search_ms: float | None = None


def find_similar(
    text: str,
    *,
    user: Person,
    limit: int | None = None,
    exclude: Collection[int] | None = None,
    statuses: Collection[str] | None = None,
) -> SearchOutcome:
    """Tickets like `text` among those that `user` may see, best first.

    `limit` is capped by SEARCH_MAX_LIMIT; `exclude` are ids never to offer; `statuses` of None means every
    status. Never raises for a provider's failure: that is the outcome `unavailable`, with its reason.
    """
    query = clean_text(text[:LONGEST_QUERY]).strip()
    scope = scope_of(Ticket.objects.visible_to(user), exclude, statuses)
    search = Search(query, user, _bounded(limit), scope)
    filters = {"exclude": sorted(exclude or ()), "statuses": None if statuses is None else sorted(statuses)}
    return search.run({"limit": search.limit, **filters})


def _bounded(limit: int | None) -> int:
    return max(1, min(limit or settings.SEARCH_LIMIT, settings.SEARCH_MAX_LIMIT))


@dataclass(slots=True)
class Search:
    """One search under way: from the text to the logged outcome."""

    query: str
    user: Person
    limit: int
    scope: Scope

    def run(self, filters: dict[str, Any]) -> SearchOutcome:
        clock = Clock()
        index: Index | None = None
        try:
            self._refuse_the_impossible()
            index = usable_index()
            outcome = self._by_meaning(index, clock)
        except Unavailable as reason:
            outcome = self._without_meaning(reason, index, clock)
        return self._logged(outcome, index, filters, clock)

    def _refuse_the_impossible(self) -> None:
        if not may_view(self.user):
            raise Unavailable(_("You may not see tickets, so none can be searched for you."), "not_permitted")
        if is_blank(self.query):
            raise Unavailable(_("There is no text to search for."), "empty_query")

    def _by_meaning(self, index: Index, clock: Clock) -> SearchOutcome:
        vector = self._embedded(index, clock)
        started = perf_counter()
        found = collect(self.query, vector, index, self.scope)
        coverage = coverage_of(index, found)
        hits = self._hits(found, index.profile, coverage.total)
        clock.search_ms = _since(started)
        return SearchOutcome(
            Outcome.FOUND if hits else Outcome.NOTHING,
            hits,
            coverage,
            calibrated=index.profile.is_calibrated,
            model=index.model,
        )

    def _embedded(self, index: Index, clock: Clock) -> NDArray[np.float32]:
        started = perf_counter()
        try:
            return index.embedder.embed_query(shorten(self.query, index.embedder.window_bytes))
        except EmbeddingError as error:
            raise Unavailable(str(error), error.code) from error
        finally:
            clock.embed_ms = _since(started)

    def _without_meaning(self, reason: Unavailable, index: Index | None, clock: Clock) -> SearchOutcome:
        """Unavailable all the same, but with what shares words or identifiers."""
        hits: tuple[Hit, ...] = ()
        coverage = Coverage(0, 0)
        if reason.code not in ("not_permitted", "empty_query"):
            started = perf_counter()
            state = index.state if index else counted_state("")
            found = collect_without_vector(self.query, self.scope)
            coverage = Coverage(state.indexed, state.total)
            profile = index.profile if index else SearchProfile(model="")
            hits = self._hits(found, profile, state.total)
            clock.search_ms = _since(started)
        model = index.model if index else ""
        return SearchOutcome(Outcome.UNAVAILABLE, hits, coverage, str(reason), reason.code, model=model)

    def _hits(self, found: Found, profile: SearchProfile, total: int) -> tuple[Hit, ...]:
        candidates = self._candidates(found)
        ranked = rank(candidates, query=self.query, frequencies=found.frequencies, total=total)
        kept = [hit for hit in ranked if profile.floor is None or hit.score >= profile.floor][: self.limit]
        tickets = self.scope.tickets.in_bulk([hit.ticket_id for hit in kept])
        return tuple(
            self._hit(number, hit, tickets[hit.ticket_id], profile)
            for number, hit in enumerate((hit for hit in kept if hit.ticket_id in tickets), start=1)
        )

    def _candidates(self, found: Found) -> list[Candidate]:
        ids = found.ids
        texts = self._texts(ids if words_help(self.query) else ids - found.cosines.keys())
        return [
            Candidate(
                ticket_id,
                found.cosines.get(ticket_id),
                tuple(found.shared.get(ticket_id, ())),
                texts.get(ticket_id, ""),
            )
            for ticket_id in sorted(ids)
        ]

    def _texts(self, ids: Collection[int]) -> dict[int, str]:
        """The beginnings of the tickets' texts, for the comparison of words."""
        if not ids:
            return {}
        rows = Ticket.objects.filter(pk__in=ids).values_list("pk", "title", "description")
        return {pk: document(title, description)[:RANKED_CHARS] for pk, title, description in rows}

    def _hit(self, number: int, hit: RankedHit, ticket: Ticket, profile: SearchProfile) -> Hit:
        likely = profile.likely is not None and hit.score >= profile.likely
        return Hit(
            ticket=ticket,
            rank=number,
            similarity=hit.cosine,
            score=hit.score,
            band=Band.LIKELY if likely else Band.POSSIBLE,
            matched=hit.matched,
            identifiers=hit.identifiers,
            passage=document(ticket.title, ticket.description)[:PASSAGE_CHARS],
        )

    def _logged(
        self, outcome: SearchOutcome, index: Index | None, filters: dict[str, Any], clock: Clock
    ) -> SearchOutcome:
        log = SearchLog.objects.create(
            text=self.query,
            user_id=self.user.pk,
            outcome=outcome.outcome,
            reason_code=outcome.reason_code,
            model=outcome.model,
            profile=_profile_record(index.profile) if index else {},
            filters=filters,
            hits=_hit_records(outcome.hits),
            embed_ms=clock.embed_ms,
            search_ms=clock.search_ms,
            indexed=outcome.coverage.indexed,
            total=outcome.coverage.total,
        )
        object.__setattr__(outcome, "log_id", log.pk)
        return outcome


def coverage_of(index: Index, found: Found) -> Coverage:
    """What the worker counted, corrected by what has changed since."""
    state = index.state
    total = state.total + found.added
    if state.swept_at is None or found.fresh > MOST_WAITING:
        # In the middle of filling in: the worker's count is a few seconds old.
        indexed = state.indexed
    else:
        indexed = total - found.waiting
    return Coverage(
        max(0, min(indexed, total)), total, found.oldest_waiting_seconds if indexed < total else None
    )


def _profile_record(profile: SearchProfile) -> dict[str, Any]:
    return {
        "weights": [profile.meaning_weight, profile.identifier_weight, profile.word_weight],
        "floor": profile.floor,
        "likely": profile.likely,
        "calibrated_at": profile.calibrated_at and profile.calibrated_at.isoformat(),
    }


def _hit_records(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    return [
        {
            "id": hit.ticket.pk,
            "score": round(hit.score, 4),
            "similarity": hit.similarity and round(hit.similarity, 4),
            "matched": list(hit.matched),
        }
        for hit in hits
    ]


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
