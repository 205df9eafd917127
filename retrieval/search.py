"""Search by meaning: which existing tickets are like this text?

Three outcomes: found, nothing, unavailable. `nothing` is only ever said by a search that compared meanings.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models.functions import Left
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from tickets.connections import release_connections
from tickets.models import Ticket
from tickets.permissions import Person, may_view
from tickets.text import clean_text, is_blank

from .candidates import MOST_WAITING, Found, Scope, collect, collect_without_vector, scope_of
from .documents import document, prepared
from .embedders import EmbeddingError
from .index import Index, Unavailable, counted_state, usable_index
from .log import log_and_fetch
from .models import SearchProfile
from .passages import best_passage
from .ranking import Candidate, RankedHit, Weights, is_likely, is_worth_reading, rank, words_help
from .results import Band, Coverage, Hit, Outcome, SearchOutcome

__all__ = ["Band", "Coverage", "Hit", "Outcome", "SearchOutcome", "find_similar"]

LONGEST_QUERY = 100_000
RANKED_CHARS = 2_000


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
    most = _bounded(limit)
    filters = {
        "limit": most,
        "exclude": sorted(exclude or ()),
        "statuses": None if statuses is None else sorted(statuses),
    }
    scope = scope_of(Ticket.objects.visible_to(user), exclude, statuses)
    return Search(query, user, most, scope, filters).run()


def _bounded(limit: int | None) -> int:
    return max(1, min(limit or settings.SEARCH_LIMIT, settings.SEARCH_MAX_LIMIT))


@dataclass(slots=True)
class Search:
    """One search under way: from the text to the logged outcome."""

    query: str
    user: Person
    limit: int
    scope: Scope
    filters: dict[str, Any]
    clock: Clock = field(default_factory=Clock)
    index: Index | None = None

    def run(self) -> SearchOutcome:
        try:
            self._refuse_the_impossible()
            self.index = usable_index()
            return self._by_meaning(self.index)
        except Unavailable as reason:
            return self._without_meaning(reason)

    def _refuse_the_impossible(self) -> None:
        if not may_view(self.user):
            raise Unavailable(_("You may not see tickets, so none can be searched for you."), "not_permitted")
        if is_blank(self.query):
            raise Unavailable(_("There is no text to search for."), "empty_query")

    def _by_meaning(self, index: Index) -> SearchOutcome:
        vector = self._embedded(index)
        started = perf_counter()
        found = collect(self.query, vector, index, self.scope)
        coverage = coverage_of(index, found)
        ranked = self._ranked(found, index.profile, coverage.total)
        self.clock.search_ms = _since(started)
        return self._answer(Outcome.FOUND if ranked else Outcome.NOTHING, ranked, coverage)

    def _embedded(self, index: Index) -> NDArray[np.float32]:
        started = perf_counter()
        try:
            embedder = index.embedder
            text, _kept = prepared(self.query, embedder.window_bytes, dilutes=embedder.dilutes)
            if embedder.remote:
                release_connections()
            return embedder.embed_query(text)
        except EmbeddingError as error:
            raise Unavailable(str(error), error.code) from error
        finally:
            self.clock.embed_ms = _since(started)

    def _without_meaning(self, reason: Unavailable) -> SearchOutcome:
        """Unavailable all the same, but with what shares words or identifiers."""
        if reason.code in ("not_permitted", "empty_query"):
            return self._answer(Outcome.UNAVAILABLE, [], Coverage(0, 0), reason)
        started = perf_counter()
        state = self.index.state if self.index else counted_state("")
        found = collect_without_vector(self.query, self.scope)
        ranked = self._ranked(found, self._profile, state.total)
        self.clock.search_ms = _since(started)
        return self._answer(Outcome.UNAVAILABLE, ranked, Coverage(state.indexed, state.total), reason)

    @property
    def _profile(self) -> SearchProfile:
        return self.index.profile if self.index else SearchProfile(model="")

    def _ranked(self, found: Found, profile: SearchProfile, total: int) -> list[RankedHit]:
        """The best candidates above the floor."""
        ranked = order(self.query, found, profile, total)
        return [hit for hit in ranked if is_worth_reading(hit, profile.floor)][: self.limit]

    def _answer(
        self, outcome: Outcome, ranked: list[RankedHit], coverage: Coverage, reason: Unavailable | None = None
    ) -> SearchOutcome:
        """Logs the search and fetches its tickets, through the permissions once more."""
        code = reason.code if reason else ""
        model = "" if reason else self._profile.model  # the one that has compared
        log = self._log(outcome, ranked, coverage, code, model)
        log_id, tickets = log_and_fetch(log, self.scope, [hit.ticket_id for hit in ranked])
        kept = [hit for hit in ranked if hit.ticket_id in tickets]
        return SearchOutcome(
            outcome,
            tuple(self._hit(n, hit, tickets[hit.ticket_id]) for n, hit in enumerate(kept, start=1)),
            coverage,
            str(reason or ""),
            code,
            log_id,
            calibrated=self._profile.is_calibrated,
            model=model,
        )

    def _hit(self, number: int, hit: RankedHit, ticket: Ticket) -> Hit:
        likely = is_likely(hit, self._profile.floor, self._profile.likely)
        return Hit(
            ticket=ticket,
            rank=number,
            similarity=hit.cosine,
            score=hit.score,
            band=Band.LIKELY if likely else Band.POSSIBLE,
            matched=hit.matched,
            identifiers=hit.identifiers,
            passage=best_passage(self.query, ticket.title, ticket.description, hit.identifiers),
        )

    def _log(
        self, outcome: Outcome, ranked: list[RankedHit], coverage: Coverage, reason_code: str, model: str
    ) -> dict[str, Any]:
        return {
            "text": self.query,
            "user_id": self.user.pk,
            "outcome": outcome.value,
            "reason_code": reason_code,
            "model": model,
            "profile": _profile_record(self.index.profile) if self.index else {},
            "filters": self.filters,
            "hits": [_hit_record(hit) for hit in ranked],
            "embed_ms": self.clock.embed_ms,
            "search_ms": self.clock.search_ms,
            "indexed": coverage.indexed,
            "total": coverage.total,
        }


def beginnings(ids: Collection[int]) -> dict[int, str]:
    """The beginnings of tickets' texts, for the comparison of words."""
    if not ids:
        return {}
    rows = Ticket.objects.filter(pk__in=ids).values_list("pk", "title", Left("description", RANKED_CHARS))
    return {pk: document(title, description)[:RANKED_CHARS] for pk, title, description in rows}


def order(query: str, found: Found, profile: SearchProfile, total: int) -> list[RankedHit]:
    """Everything that was found, best first, whatever the floor. `total`: the number of tickets."""
    ids = found.ids
    texts = beginnings(ids if words_help(query) else ids - found.cosines.keys())
    candidates = [
        Candidate(
            ticket_id,
            found.cosines.get(ticket_id),
            tuple(found.shared.get(ticket_id, ())),
            texts.get(ticket_id, ""),
        )
        for ticket_id in sorted(ids)
    ]
    weights = Weights(profile.identifier_weight, profile.word_weight)
    return rank(candidates, query=query, frequencies=found.frequencies, total=total, weights=weights)


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


def _hit_record(hit: RankedHit) -> dict[str, Any]:
    return {
        "id": hit.ticket_id,
        "score": round(hit.score, 4),
        "similarity": None if hit.cosine is None else round(hit.cosine, 4),
        "matched": list(hit.matched),
    }


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000
