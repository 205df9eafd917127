"""The inbox of possible duplicates: pairs side by side, one key each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from retrieval.differences import Comparison, compare_texts
from retrieval.duplicates import due_checks
from retrieval.judging import AlreadyJudged, judge, open_candidates, undo
from retrieval.models import DuplicateCandidate, DuplicateCheck, Incident, Verdict
from retrieval.sentences import matched_by
from retrieval.state import search_state
from tickets.models import readable

from .base import TriageAdmin, language_of_ticket, say_error, to_page
from .counting import bounded_count
from .panel import said

LISTED = 30
LAST = "last_judgement"  # in the session: what "undo" takes back
POSTPONED = "later"


@dataclass
class Pair:
    """A candidate as it is shown: the older ticket left, the newer one right."""

    row: DuplicateCandidate

    @cached_property
    def title(self) -> Comparison:
        return compare_texts(self.row.candidate.title, self.row.ticket.title)

    @cached_property
    def description(self) -> Comparison:
        return compare_texts(self.row.candidate.description, self.row.ticket.description)

    @property
    def why(self) -> str:
        return matched_by(self.row.matched, self.row.identifiers, self.row.similarity)

    @cached_property
    def sides(self) -> list[dict[str, Any]]:
        older, newer = self.row.candidate, self.row.ticket
        languages = language_of_ticket(older), language_of_ticket(newer)
        differs = {
            "status": older.status != newer.status,
            "priority": older.priority != newer.priority,
            "reporter": older.reporter_id != newer.reporter_id,
            "category": older.category_id != newer.category_id,
            "language": languages[0] != languages[1],
        }
        return [
            {"ticket": older, "heading": _("Older"), "language": languages[0], "differs": differs,
             "title": self.title.left, "description": self.description.left},
            {"ticket": newer, "heading": _("Newer"), "language": languages[1], "differs": differs,
             "title": self.title.right, "description": self.description.right},
        ]  # fmt: skip


class InboxAdmin(TriageAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_url("duplicates/", require_GET(self.inbox_view), "tickets_ticket_duplicates"),
            self.own_url(
                "duplicates/undo/", require_POST(self.inbox_undo_view), "tickets_ticket_duplicates_undo"
            ),
            self.own_url("duplicates/<int:row_id>/", require_POST(self.decide_view), "tickets_ticket_decide"),
            *super().get_urls(),
        ]

    def inbox_view(self, request: HttpRequest) -> HttpResponse:
        return _inbox(self, request)

    def decide_view(self, request: HttpRequest, row_id: int) -> HttpResponse:
        return _decide(self, request, row_id)

    def inbox_undo_view(self, request: HttpRequest) -> HttpResponse:
        return _undo_last(self, request)


def _inbox(site: InboxAdmin, request: HttpRequest) -> HttpResponse:
    """`?pair=` the one to look at; `?band=likely` only those that are likely the same."""
    site.refuse_unless(request, change=False)
    only_likely = request.GET.get("band") == "likely"
    rows = list(waiting(only_likely)[:LISTED])
    asked = request.GET.get("pair", "")
    row = _asked_for(request, asked, rows) if asked.isdecimal() else None
    row = row or (rows[0] if rows else None)
    if row is not None and row not in rows:
        rows.insert(0, row)
    place = rows.index(row) if row is not None else 0
    context = {
        "rows": rows,
        "pair": Pair(row) if row else None,
        "previous": rows[place - 1] if place else None,
        "next": rows[place + 1] if place + 1 < len(rows) else None,
        "only_likely": only_likely,
        "counts": counts(),
        "undoable": LAST in request.session,
        "incidents": bounded_count(Incident.objects.filter(state=Incident.State.PROPOSED)),
        "search_state": search_state(),
        "due": bounded_count(due_checks()) if row is None else 0,
        "failed": bounded_count(DuplicateCheck.objects.filter(checked_at=None).exclude(error="")),
    }
    return site.triage_page(request, "duplicates.html", _("Duplicate inbox"), context)


def waiting(only_likely: bool = False) -> QuerySet[DuplicateCandidate]:
    """Open pairs: those put off last, the likely ones first, and of these the nearest."""
    rows = open_candidates().select_related(
        "ticket__reporter", "ticket__category", "candidate__reporter", "candidate__category"
    )
    if only_likely:
        rows = rows.filter(likely=True)
    return rows.order_by(
        F("postponed_at").asc(nulls_first=True),
        "-likely",
        F("similarity").desc(nulls_last=True),
        "created_at",
        "pk",
    )


def counts() -> dict[str, int]:
    """How many pairs wait, and since when; see `bounded_count()`."""
    now = timezone.now()
    day, week = now - timedelta(days=1), now - timedelta(days=7)
    figures = {
        "all": Q(),
        "likely": Q(likely=True),
        "today": Q(created_at__gt=day),
        "this_week": Q(created_at__gt=week, created_at__lte=day),
        "older": Q(created_at__lte=week),
    }
    return {name: bounded_count(open_candidates().filter(which)) for name, which in figures.items()}


def _asked_for(request: HttpRequest, pk: str, rows: list[DuplicateCandidate]) -> DuplicateCandidate | None:
    """That pair, or nothing and a word about what has become of it."""
    known = next((row for row in rows if row.pk == int(pk)), None) or waiting().filter(pk=int(pk)).first()
    if known is None:
        decided = DuplicateCandidate.objects.filter(pk=int(pk)).select_related("decided_by").first()
        messages.info(request, _what_became_of(decided))
    return known


def _what_became_of(row: DuplicateCandidate | None) -> str:
    if row is None:
        return _("This pair is gone: one of the tickets has been deleted.")
    if row.state != DuplicateCandidate.State.DECIDED:
        return _("This pair needs no decision any more: one of the tickets is solved or merged.")
    return _("%(who)s has already judged this pair: %(judgement)s.") % {
        "who": readable(row.decided_by) or _("Somebody"),
        "judgement": row.get_judgement_display(),
    }


def _decide(site: InboxAdmin, request: Any, row_id: int) -> HttpResponse:
    """`judgement`: same, related, different or later; then on to the pair `next`."""
    site.refuse_unless(request, change=True)
    row = DuplicateCandidate.objects.select_related("ticket", "candidate").filter(pk=row_id).first()
    judgement = request.POST.get("judgement", "")
    if row is None:
        messages.warning(request, _what_became_of(None))
    elif judgement == POSTPONED:
        DuplicateCandidate.objects.filter(pk=row.pk).update(postponed_at=Now())
        request.session[LAST] = {"postponed": row.pk}
    elif judgement in Verdict.Judgement.values:
        _judge_row(request, row, judgement)
    return _back_to_inbox(request)


def _judge_row(request: Any, row: DuplicateCandidate, judgement: str) -> None:
    try:
        verdict = judge(row.ticket, row.candidate, judgement, by=request.user)
    except AlreadyJudged as known:
        say_error(request, known)
    except ValidationError as error:
        say_error(request, error)
    else:
        request.session[LAST] = {"verdict": verdict.pk, "pair": row.pk}
        messages.success(request, said(verdict))


def _undo_last(site: InboxAdmin, request: Any) -> HttpResponse:
    site.refuse_unless(request, change=True)
    last = request.session.pop(LAST, {})
    if "postponed" in last:
        DuplicateCandidate.objects.filter(pk=last["postponed"]).update(postponed_at=None)
        return to_page("tickets_ticket_duplicates", query=f"?pair={last['postponed']}")
    verdict = Verdict.objects.filter(pk=last.get("verdict"), by=request.user).first()
    if verdict is None:
        messages.info(request, _("There is nothing to undo."))
        return to_page("tickets_ticket_duplicates")
    try:
        undo(verdict, by=request.user)
    except ValidationError as error:
        say_error(request, error)
        return to_page("tickets_ticket_duplicates")
    messages.success(request, _("Undone."))
    return to_page("tickets_ticket_duplicates", query=f"?pair={last['pair']}")


def _back_to_inbox(request: HttpRequest) -> HttpResponse:
    following = request.POST.get("next", "")
    query = "?band=likely" if request.POST.get("band") == "likely" else ""
    if following.isdecimal() and open_candidates().filter(pk=int(following)).exists():
        query += ("&" if query else "?") + f"pair={int(following)}"
    return to_page("tickets_ticket_duplicates", query=query)
