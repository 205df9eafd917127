"""What people said about pairs of tickets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from django.db.models import Q

from .models import Verdict


def judged_different(ticket_id: int) -> set[int]:
    """The tickets that people found to be another problem than this one; the latest word on a pair counts."""
    pairs: Iterable[tuple[int | None, int, str]] = (
        Verdict.objects.filter(Q(ticket=ticket_id) | Q(candidate=ticket_id, ticket__isnull=False))
        .order_by("created_at", "pk")
        .values_list("ticket_id", "candidate_id", "judgement")
    )
    latest = {frozenset((one, other)): judgement for one, other, judgement in pairs}
    different = (pair for pair, judgement in latest.items() if judgement == Verdict.Judgement.DIFFERENT)
    return {other for other in chain.from_iterable(different) if other is not None} - {ticket_id}
