"""The check that every new ticket gets once it has a vector: which others may be the same problem?

It belongs to the worker, which calls `check_due_tickets()` while no vector is wanted. A ticket becomes due in
the statement that stores its first vector, and stops being due in the transaction that stores what was found:
a worker that is killed in between has lost nothing. A check that fails says so in its row and is due again
an hour later.

Nothing is checked before the index covers every ticket: comparing with half of them would pass for having
looked. How many are proposed for a ticket is bounded, and the pairs that people have judged stay out.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from time import monotonic

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tickets.models import Ticket, Via

from . import incidents
from .embedders import Embedder, model_key
from .index import Index, profile_of
from .judging import judged_with
from .models import DuplicateCandidate, DuplicateCheck, IndexState
from .neighbours import Neighbour, bounds_of, compare, neighbours, vector_of

logger = logging.getLogger(__name__)

PER_TICKET = 3
# One call works no longer than that, because new tickets may want their vectors.
SECONDS = 1.0
RETRY = timedelta(hours=1)
FAILED = "The check failed; the worker's log says why."


def check_due_tickets(embedder: Embedder) -> bool:
    """Checks tickets for about a second; answers whether more are due."""
    if not due_checks().exists():
        return False
    index = _complete_index(embedder)
    if index is None:
        return False
    until = monotonic() + SECONDS
    while monotonic() < until:
        if not _check_next(index):
            return False
    return True


def due_checks() -> QuerySet[DuplicateCheck]:
    return DuplicateCheck.objects.filter(checked_at=None, due_at__lte=Now())


def _complete_index(embedder: Embedder) -> Index | None:
    model = model_key(embedder)
    state = IndexState.objects.filter(pk=model, completed_at__isnull=False).first()
    return None if state is None else Index(embedder, state, profile_of(model))


def _check_next(index: Index) -> bool:
    """Checks the ticket that is due longest; several workers share them. Answers whether there was one."""
    with transaction.atomic():
        locked = due_checks().select_for_update(skip_locked=True, no_key=True, of=("self",))
        check = locked.select_related("ticket").order_by("due_at", "pk").first()
        if check is None:
            return False
        this = DuplicateCheck.objects.filter(pk=check.pk)
        try:
            with transaction.atomic():
                found = check_ticket(check.ticket, index)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("the duplicate check of ticket %d failed", check.pk)
            this.update(error=FAILED, due_at=Now() + RETRY)
        else:
            this.update(checked_at=Now(), found=found, error="")
        return True


def check_ticket(ticket: Ticket, index: Index) -> int:
    """Proposes what is near, and an incident where many are; answers how many pairs were near enough.

    A ticket that was created while nobody could search counts as searched from now on.
    """
    vector = vector_of(ticket.pk, index.model)
    if vector is None:
        return 0
    near: list[Neighbour] = []
    if ticket.duplicate_of_id is None and not ticket.is_resolved:
        limits = bounds_of(index.profile, index.state.indexed)
        everything = Ticket.objects.all()
        ranked, _coverage = compare(ticket, vector, index, everything, limits)
        # While others wait for their vectors they are found by words: their own check compares meanings.
        compared = [hit for hit in ranked if hit.cosine is not None]
        near = neighbours(
            compared,
            everything,
            limits,
            exclude=judged_with(ticket.pk) | {ticket.pk},
            limit=PER_TICKET,
        )
        # All that are likely the same; of those that are only possible the nearest, or agents drown in them.
        near = [one for one in near if one.likely] or near[:1]
        pairs = [_pair(ticket, one, index.model) for one in near]
        DuplicateCandidate.objects.bulk_create(pairs, ignore_conflicts=True)
        incidents.look_for_one(ticket, index.model, limits)
    if ticket.duplicate_check == Ticket.DuplicateCheck.UNAVAILABLE:
        ticket.change(by=None, via=Via.SYSTEM, duplicate_check=Ticket.DuplicateCheck.SEARCHED)
    return len(near)


def _pair(ticket: Ticket, one: Neighbour, model: str) -> DuplicateCandidate:
    """The newer ticket and the older one, whichever of them is being checked."""
    older, newer = sorted((ticket, one.ticket), key=lambda each: (each.created_at, each.pk))
    return DuplicateCandidate(
        ticket=newer,
        candidate=older,
        similarity=one.ranked.cosine,
        score=one.ranked.score,
        likely=one.likely,
        matched=list(one.ranked.matched),
        identifiers=list(one.ranked.identifiers),
        model=model,
    )
