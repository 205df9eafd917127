"""Similar tickets beside a ticket: loaded after the page, one click to judge each."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from retrieval.judging import judge, latest_verdict, settled_with, undo
from retrieval.models import Verdict
from retrieval.neighbours import WAITING, similar_to
from retrieval.sentences import coverage_sentence
from tickets.merge_report import merge_report
from tickets.models import Ticket, Via, readable

from .base import TriageAdmin, say_error, to_page
from .cards import cards_of

SHOWN = 6
SAID = {
    Verdict.Judgement.RELATED: gettext_lazy("#%(newer)s and #%(older)s are related now."),
    Verdict.Judgement.DIFFERENT: gettext_lazy(
        "#%(newer)s and #%(older)s are different problems. They stay apart."
    ),
}


class PanelAdmin(TriageAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_url(
                "<int:object_id>/similar/", require_GET(self.similar_view), "tickets_ticket_similar"
            ),
            self.own_url(
                "<int:object_id>/judge/<int:other_id>/", require_POST(self.judge_view), "tickets_ticket_judge"
            ),
            self.own_url("<int:object_id>/reopen/", require_POST(self.reopen_view), "tickets_ticket_reopen"),
            *super().get_urls(),
        ]

    def similar_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return _similar(self, request, object_id)

    def judge_view(self, request: HttpRequest, object_id: int, other_id: int) -> HttpResponse:
        return _judge(self, request, object_id, other_id)

    def reopen_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return _reopen(self, request, object_id)


def _similar(site: PanelAdmin, request: HttpRequest, object_id: int) -> HttpResponse:
    """The panel alone for htmx, as a page of its own for browsers without JavaScript."""
    ticket = _visible(site, request, object_id)
    context = panel_context(site, request, ticket)
    if "HX-Request" in request.headers:
        return render(request, "admin/retrieval/_similar.html", context)
    return site.triage_page(request, "similar.html", _("Similar tickets"), context)


def panel_context(site: PanelAdmin, request: HttpRequest, ticket: Ticket) -> dict[str, Any]:
    outcome = similar_to(ticket, user=request.user, exclude=settled_with(ticket), limit=SHOWN)
    return {
        "ticket": ticket,
        "original": ticket,
        "related": ticket.related().only("title", "status"),
        "outcome": outcome,
        "cards": cards_of(outcome.hits),
        "coverage": coverage_sentence(outcome.coverage),
        "waiting": outcome.reason_code == WAITING,
        "can_change": site.has_change_permission(request),
    }


def _judge(site: PanelAdmin, request: Any, object_id: int, other_id: int) -> HttpResponse:
    """`judgement`: same, related or different; `undo` takes the last one back."""
    site.refuse_unless(request, change=True)
    ticket, other = _visible(site, request, object_id), _visible(site, request, other_id)
    asked = request.POST.get("judgement", "")
    try:
        if asked == "undo":
            _undo(ticket, other, request.user)
            messages.success(request, _("Undone."))
        elif asked in Verdict.Judgement.values:
            verdict = judge(ticket, other, asked, by=request.user)
            messages.success(request, said(verdict))
        else:
            raise PermissionDenied
    except ValidationError as error:
        say_error(request, error)
    if "HX-Request" in request.headers:
        context = panel_context(site, request, ticket) | {"said": messages.get_messages(request)}
        return render(request, "admin/retrieval/_similar.html", context)
    return to_page("tickets_ticket_change", ticket.pk, query="#similar")


def said(verdict: Verdict) -> str:
    """What a judgement has done, as a sentence."""
    newer, older = verdict.ticket, verdict.candidate
    if verdict.judgement == Verdict.Judgement.SAME and newer is not None:
        return merge_report(newer if newer.duplicate_of_id else older)
    return str(SAID[Verdict.Judgement(verdict.judgement)]) % {
        "newer": verdict.ticket_id,
        "older": verdict.candidate_id,
    }


def _undo(ticket: Ticket, other: Ticket, by: Any) -> None:
    verdict = latest_verdict(ticket.pk, other.pk)
    if verdict is None:
        ticket.unlink_from(other, by)  # linked without a verdict
    else:
        undo(verdict, by=by)


def _reopen(site: PanelAdmin, request: Any, object_id: int) -> HttpResponse:
    """A solved problem is back."""
    site.refuse_unless(request, change=True)
    ticket = _visible(site, request, object_id)
    try:
        events = ticket.change(by=request.user, via=Via.ADMIN, status=Ticket.Status.OPEN)
    except ValidationError as error:
        say_error(request, error)
    else:
        if events:
            assigned = readable(ticket.assignee) or _("nobody")
            sentence = _("#%(id)s is open again, assigned to %(assignee)s.")
            messages.success(request, sentence % {"id": ticket.pk, "assignee": assigned})
    back = request.POST.get("back", "")
    if back.isdecimal():
        return to_page("tickets_ticket_change", int(back), query="#similar")
    if back.startswith("pair-"):
        return to_page(
            "tickets_ticket_duplicates", query=f"?pair={int(back[5:])}" if back[5:].isdecimal() else ""
        )
    return to_page("tickets_ticket_change", ticket.pk)


def _visible(site: PanelAdmin, request: HttpRequest, pk: int) -> Ticket:
    site.refuse_unless(request, change=False)
    ticket: Ticket = get_object_or_404(site.get_queryset(request), pk=pk)
    return ticket
