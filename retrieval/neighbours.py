"""Which tickets are like a given one: by the vector it has, so that nothing is asked of a provider."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from tickets.models import Ticket
from tickets.permissions import Person
from tickets.querysets import TicketQuerySet

from .calibration import FEWEST_TICKETS, SAMPLE, SAMPLE_SQL, Bounds, bounds
from .candidates import collect, collect_without_vector, scope_of
from .documents import document, has_words
from .index import Index, Unavailable, counted_state, usable_index
from .models import SearchProfile
from .passages import best_passage
from .ranking import RankedHit, is_likely, is_worth_reading
from .results import Band, Coverage, Hit, Outcome, SearchOutcome
from .search import LONGEST_QUERY, coverage_of, order

Vector = NDArray[np.float32]

VECTOR = """
    SELECT e.embedding::real[] FROM retrieval_ticketembedding e
    JOIN tickets_ticket t ON t.id = e.ticket_id AND t.content_hash = e.content_hash
    WHERE e.model = %s AND e.ticket_id = %s AND e.embedding IS NOT NULL"""
WAITING = "ticket_waiting"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A ranked hit and the ticket it leads to: for a merged one the ticket that it stands for."""

    ranked: RankedHit
    ticket: Ticket
    likely: bool


def vector_of(ticket_id: int, model: str) -> Vector | None:
    """The vector of the ticket's present text; None while it waits for one, or has no words."""
    with connection.cursor() as cursor:
        cursor.execute(VECTOR, [model, ticket_id])
        row = cursor.fetchone()
    return None if row is None else np.array(row[0], dtype=np.float32)


def bounds_of(profile: SearchProfile, indexed: int) -> Bounds | None:
    """Bounds for comparing whole tickets: from the vectors there are, among themselves.

    The profile's are for questions, which are short; whole tickets are closer to each other. With too few
    tickets the profile's have to do; None where it has none.
    """
    sampled = sampled_bounds(profile.model, indexed.bit_length()) if indexed >= FEWEST_TICKETS else None
    if sampled is not None or profile.floor is None or profile.likely is None:
        return sampled
    return Bounds(profile.floor, profile.likely)


@lru_cache(maxsize=8)
def sampled_bounds(model: str, magnitude: int) -> Bounds | None:
    """By the same alert rates as the profile's; taken again when the number of vectors has doubled."""
    with connection.cursor() as cursor:
        cursor.execute(SAMPLE_SQL, [model, SAMPLE])
        vectors = np.array([vector for _title, vector in cursor.fetchall()], dtype=np.float32)
    return bounds(vectors, vectors) if len(vectors) >= FEWEST_TICKETS else None


def similar_to(
    ticket: Ticket,
    *,
    user: Person,
    exclude: Collection[int],
    limit: int,
    statuses: Collection[str] | None = None,
) -> SearchOutcome:
    """Tickets like this one that `user` may see, without those of `exclude`, without a call to a provider.

    `statuses` of None means every status. Not logged: nobody has asked a question. Never raises;
    `unavailable` says why, and while the ticket waits for its vector its code is `ticket_waiting`.
    """
    visible = Ticket.objects.visible_to(user)
    if statuses is not None:
        visible = visible.filter(status__in=list(statuses))
    index = None
    try:
        if not has_words(_text(ticket)):
            raise Unavailable(_("This ticket has no words to compare by."), "empty_query")
        index = usable_index()
        vector = vector_of(ticket.pk, index.model)
        if vector is None:
            raise Unavailable(
                _("This ticket is not indexed yet, so meanings could not be compared."), WAITING
            )
    except Unavailable as reason:
        state = index.state if index else counted_state("")
        coverage = Coverage(state.indexed, state.total)
        return _without_vector(ticket, reason, coverage, visible, exclude, limit)
    limits = bounds_of(index.profile, index.state.indexed)
    ranked, coverage = compare(ticket, vector, index, visible, limits)
    near = neighbours(ranked, visible, limits, exclude=exclude, limit=limit)
    outcome = Outcome.FOUND if near else Outcome.NOTHING
    return SearchOutcome(
        outcome, _hits(ticket, near), coverage, calibrated=limits is not None, model=index.model
    )


def compare(
    ticket: Ticket, vector: Vector, index: Index, visible: TicketQuerySet, limits: Bounds | None
) -> tuple[list[RankedHit], Coverage]:
    """All others above the floor, best first."""
    text = _text(ticket)
    found = collect(text, vector, index, scope_of(visible, [ticket.pk], None))
    coverage = coverage_of(index, found)
    floor = limits.floor if limits else None
    ranked = order(text, found, index.profile, coverage.total)
    return [hit for hit in ranked if is_worth_reading(hit, floor)], coverage


def neighbours(
    ranked: Iterable[RankedHit],
    visible: TicketQuerySet,
    limits: Bounds | None,
    *,
    exclude: Collection[int],
    limit: int,
) -> list[Neighbour]:
    """The first `limit` of the ranked, each chain of merges once and by its end."""
    most = list(ranked)[: 3 * limit + len(exclude)]
    tickets = visible.select_related("reporter").in_bulk([hit.ticket_id for hit in most])
    found: dict[int, Neighbour] = {}
    for hit in most:
        ticket = tickets.get(hit.ticket_id)
        if ticket is not None and ticket.duplicate_of_id is not None:
            ticket = visible.select_related("reporter").filter(pk=ticket.chain_end().pk).first()
        if ticket is None or ticket.pk in exclude or ticket.pk in found:
            continue
        likely = limits is not None and is_likely(hit, limits.floor, limits.likely)
        found[ticket.pk] = Neighbour(hit, ticket, likely)
        if len(found) == limit:
            break
    return list(found.values())


def _without_vector(
    ticket: Ticket,
    reason: Unavailable,
    coverage: Coverage,
    visible: TicketQuerySet,
    exclude: Collection[int],
    limit: int,
) -> SearchOutcome:
    """What shares words or identifiers; tickets that only mean the same were not looked for."""
    text = _text(ticket)
    found = collect_without_vector(text, scope_of(visible, [ticket.pk], None))
    ranked = order(text, found, SearchProfile(model=""), 0)
    near = neighbours(
        [hit for hit in ranked if is_worth_reading(hit, 1.0)], visible, None, exclude=exclude, limit=limit
    )
    return SearchOutcome(Outcome.UNAVAILABLE, _hits(ticket, near), coverage, str(reason), reason.code)


def _hits(ticket: Ticket, near: list[Neighbour]) -> tuple[Hit, ...]:
    text = _text(ticket)
    return tuple(
        Hit(
            ticket=one.ticket,
            rank=number,
            similarity=one.ranked.cosine,
            score=one.ranked.score,
            band=Band.LIKELY if one.likely else Band.POSSIBLE,
            matched=one.ranked.matched,
            identifiers=one.ranked.identifiers,
            passage=best_passage(text, one.ticket.title, one.ticket.description, one.ranked.identifiers),
        )
        for number, one in enumerate(near, start=1)
    )


def _text(ticket: Ticket) -> str:
    return document(ticket.title, ticket.description)[:LONGEST_QUERY]
