"""What a person decides about a pair of tickets: the one way in for the inbox, the panel and other pages.

The same: the newer ticket is merged into the older one, or as a person says. Related: both are linked.
Different: nothing happens to either. In each case the verdict is kept, and the pair is never proposed again,
unless it is undone.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from tickets.models import Ticket, Via, readable
from tickets.permissions import may_change
from tickets.querysets import UNRESOLVED

from .models import DuplicateCandidate, Incident, IncidentMember, Verdict

Judgement = Verdict.Judgement
State = DuplicateCandidate.State

# A pair is worth a judgement while both tickets stand for themselves and the newer one is unresolved.
STANDING = Q(ticket__duplicate_of=None, candidate__duplicate_of=None, ticket__status__in=UNRESOLVED)
SORTED_AT_ONCE = 1_000  # pairs in one transaction


class AlreadyJudged(ValidationError):
    """Somebody was faster, with the same or another judgement; `verdict` is theirs."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        sentence = _("%(who)s has already judged #%(one)s and #%(other)s: %(judgement)s.")
        super().__init__(
            sentence
            % {
                "who": readable(verdict.by) or _("Somebody"),
                "one": verdict.ticket_id,
                "other": verdict.candidate_id,
                "judgement": verdict.get_judgement_display(),
            }
        )


def judge(one: Ticket, other: Ticket, judgement: str, *, by: User, via: str = Via.ADMIN) -> Verdict:
    """Store the verdict on a pair and do what it means.

    The same person saying the same again changes nothing. Raises `AlreadyJudged`, `ValidationError` with a
    sentence where a merge is impossible, `PermissionDenied`.
    """
    if not may_change(by):
        raise PermissionDenied
    judgement = Judgement(judgement)
    older, newer = in_order(one, other)
    with transaction.atomic():
        _lock_pair(older, newer)
        known = latest_verdict(older.pk, newer.pk)
        if known is not None:
            if (known.by_id, known.judgement) == (by.pk, judgement):
                return known
            raise AlreadyJudged(known)
        if judgement == Judgement.SAME:
            newer.merge_into(older, by, via)
        elif judgement == Judgement.RELATED:
            newer.link_to(older, by, via)
        verdict = Verdict.objects.create(ticket=newer, candidate=older, judgement=judgement, by=by)
        _update_candidates(older, newer)
        return verdict


def undo(verdict: Verdict, *, by: User, via: str = Via.ADMIN) -> None:
    """Take a verdict back, with what it has done. What others have changed since stays."""
    if not may_change(by):
        raise PermissionDenied
    newer, older = verdict.ticket, verdict.candidate
    assert newer is not None, "only verdicts on pairs can be undone"
    with transaction.atomic():
        _lock_pair(older, newer)
        if not Verdict.objects.filter(pk=verdict.pk).exists():
            raise ValidationError(_("This has been undone already."))
        newer.refresh_from_db()
        older.refresh_from_db()
        if verdict.judgement == Judgement.SAME:
            for one, other in ((newer, older), (older, newer)):
                if is_merged(one, other):
                    one.unmerge(by, via)
                    break
        elif verdict.judgement == Judgement.RELATED:
            newer.unlink_from(older, by, via)
        _withdraw(verdict)


def merge(duplicate: Ticket, target: Ticket, *, by: User, via: str = Via.ADMIN) -> None:
    """Merge two tickets in the direction that a person has chosen. That is the latest word on this pair.

    Raises `ValidationError` with a sentence where it is impossible. The pair is not locked: a run over many
    tickets keeps the lock of merging from its first merge on, and `judge()` takes the two in another order.
    """
    with transaction.atomic():
        duplicate.merge_into(target, by, via)
        end = duplicate.duplicate_of
        assert end is not None
        older, newer = in_order(duplicate, end)
        known = latest_verdict(older.pk, newer.pk)
        if known is None or known.judgement != Judgement.SAME:
            Verdict.objects.create(
                ticket=newer,
                candidate=older,
                judgement=Judgement.SAME,
                by=by,
                suggested=_of_pair(older, newer).exists(),
            )
            _update_candidates(older, newer)


def unmerge(duplicate: Ticket, *, by: User, via: str = Via.ADMIN) -> None:
    """Undo a merge and take back the judgement that led to it. Raises `ValidationError` if there is none."""
    with transaction.atomic():
        same = Verdict.objects.filter(_about(duplicate), judgement=Judgement.SAME, ticket__isnull=False)
        for verdict in same.select_related("ticket", "candidate").order_by("-pk"):
            other = verdict.candidate if verdict.ticket_id == duplicate.pk else verdict.ticket
            if other is not None and is_merged(duplicate, other):
                _withdraw(verdict)
                break
        duplicate.unmerge(by, via)


def is_merged(one: Ticket, other: Ticket) -> bool:
    """Whether `one` is a duplicate of `other`, or of what `other` is a duplicate of as well."""
    return one.duplicate_of_id is not None and one.duplicate_of_id in (other.pk, other.duplicate_of_id)


def _withdraw(verdict: Verdict) -> None:
    """Forget a verdict on a pair: what was said before holds again, or the pair waits for a judgement."""
    newer, older = verdict.ticket, verdict.candidate
    assert newer is not None
    verdict.delete()
    _update_candidates(older, newer)


def in_order(one: Ticket, other: Ticket) -> tuple[Ticket, Ticket]:
    """The older and the newer of two tickets."""
    older, newer = sorted((one, other), key=lambda each: (each.created_at, each.pk))
    return older, newer


def judged_with(ticket_id: int) -> set[int]:
    """The tickets about which, together with this one, people have said something."""
    verdicts = Verdict.objects.filter(_about(ticket_id), ticket__isnull=False)
    pairs = verdicts.values_list("ticket_id", "candidate_id")
    return {one for pair in pairs for one in pair if one is not None} - {ticket_id}


def settled_with(ticket: Ticket) -> set[int]:
    """The tickets that need not be offered beside this one: itself, its chain of merges, what it is linked to
    and what people have judged together with it."""
    linked = ticket.related().values_list("pk", flat=True)
    return judged_with(ticket.pk) | {*linked, *ticket.whole_chain().values_list("pk", flat=True)}


def latest_verdict(one_id: int, other_id: int) -> Verdict | None:
    pair = Q(ticket=one_id, candidate=other_id) | Q(ticket=other_id, candidate=one_id)
    return Verdict.objects.filter(pair).select_related("by").order_by("pk").last()


def open_candidates() -> QuerySet[DuplicateCandidate]:
    """The pairs that wait for a judgement: they stand, and no proposed incident asks about them all at once.

    What no longer stands is still left out here, for the moment until `sort_out_candidates()` has seen it.
    """
    same_incident = IncidentMember.objects.filter(
        ticket=OuterRef("ticket"),
        incident__state=Incident.State.PROPOSED,
        incident__members__ticket=OuterRef("candidate"),
    )
    return DuplicateCandidate.objects.filter(STANDING, ~Exists(same_incident), state=State.OPEN)


def sort_out_candidates() -> int:
    """Sets the pairs aside that no longer stand, and brings those back that stand again; answers how many.

    Tickets are solved, reopened, merged and unmerged on many paths that know nothing of pairs. Without this,
    pairs that nobody ever judged would pile up at the head of the inbox, to be skipped by each look at it.
    """
    rows = DuplicateCandidate.objects
    fallen = _move_all(rows.filter(~STANDING, state=State.OPEN), State.ASIDE)
    return fallen + _move_all(rows.filter(STANDING, state=State.ASIDE), State.OPEN)


def _move_all(rows: QuerySet[DuplicateCandidate], state: str) -> int:
    moved = 0
    while True:
        with transaction.atomic():
            # Whoever is judging a pair holds its row, and is right.
            locked = rows.select_for_update(of=("self",), skip_locked=True, no_key=True)
            ids = list(locked.values_list("pk", flat=True)[:SORTED_AT_ONCE])
            moved += DuplicateCandidate.objects.filter(pk__in=ids).update(state=state)
        if len(ids) < SORTED_AT_ONCE:
            return moved


def _about(ticket: Ticket | int) -> Q:
    return Q(ticket=ticket) | Q(candidate=ticket)


def _update_candidates(one: Ticket, other: Ticket) -> None:
    """Has the row of a pair, if it was proposed, say what its latest verdict says."""
    verdict = latest_verdict(one.pk, other.pk)
    if verdict is None:
        values: dict[str, Any] = {
            "state": State.OPEN,
            "judgement": "",
            "decided_by": None,
            "decided_at": None,
        }
    else:
        values = {
            "state": State.DECIDED,
            "judgement": verdict.judgement,
            "decided_by": verdict.by,
            "decided_at": verdict.created_at,
        }
    _of_pair(one, other).update(**values)


def _of_pair(one: Ticket, other: Ticket) -> QuerySet[DuplicateCandidate]:
    pair = Q(ticket=one, candidate=other) | Q(ticket=other, candidate=one)
    return DuplicateCandidate.objects.filter(pair)


def _lock_pair(older: Ticket, newer: Ticket) -> None:
    """One judgement of a pair at a time. Taken before the locks of merging, so that no two wait for each
    other."""
    first, second = sorted((older.pk, newer.pk))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"judge {first} {second}"])


def belong_to(ticket: Ticket, candidates: Collection[int], *, by: User, since: datetime) -> int:
    """The problem that `by` has told apart from these tickets, before it was one itself, is this ticket now.

    Answers how many verdicts were filled in; those pairs are not proposed.
    """
    told_apart = Verdict.objects.filter(
        ticket=None,
        by=by,
        judgement=Judgement.DIFFERENT,
        candidate__in=candidates,
        created_at__gte=since,
    )
    return told_apart.exclude(candidate=ticket).update(ticket=ticket)
