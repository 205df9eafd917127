"""Pages of incidents: what the worker has proposed, and what became of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from retrieval import incidents
from retrieval.models import Incident, IncidentMember
from tickets.merge_report import solved_already
from tickets.models import Ticket
from tickets.permissions import may_add, may_comment
from tickets.text import clean_text, is_blank

from .base import TriageAdmin, say_error, to_page

LISTED = 50
State = Incident.State
# What still asks for something comes first.
ORDER = {State.PROPOSED: 0, State.CONFIRMED: 1, State.UNDONE: 2, State.DISMISSED: 3}


class IncidentAdmin(TriageAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_url("incidents/", require_GET(self.incidents_view), "tickets_ticket_incidents"),
            self.own_url("incidents/<int:pk>/", require_GET(self.incident_view), "tickets_ticket_incident"),
            self.own_url(
                "incidents/<int:pk>/act/", require_POST(self.incident_act_view), "tickets_ticket_incident_act"
            ),
            *super().get_urls(),
        ]

    def incidents_view(self, request: HttpRequest) -> HttpResponse:
        return _list(self, request)

    def incident_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return _show(self, request, pk)

    def incident_act_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        return _act(self, request, pk)


def incident_of(ticket: Ticket) -> Incident | None:
    """The incident that this ticket reports or is the parent of; none that was dismissed."""
    alive = Incident.objects.filter(state__in=[State.PROPOSED, State.CONFIRMED])
    member = (
        IncidentMember.objects.filter(ticket=ticket, incident__in=alive).select_related("incident").first()
    )
    return member.incident if member else alive.filter(parent=ticket).first()


def _list(site: IncidentAdmin, request: HttpRequest) -> HttpResponse:
    site.refuse_unless(request, change=False)
    newest = Incident.objects.annotate(
        reports=Count("members"), first_seen=Min("members__ticket__created_at")
    ).select_related("parent", "decided_by")
    rows = sorted(newest.order_by("-pk")[:LISTED], key=lambda row: ORDER[State(row.state)])
    return site.triage_page(request, "incidents.html", _("Incidents"), {"rows": rows})


def _show(site: IncidentAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    site.refuse_unless(request, change=False)
    incident = get_object_or_404(Incident.objects.select_related("parent", "decided_by"), pk=pk)
    members = list(
        incident.members.select_related("ticket__reporter").order_by("ticket__created_at", "ticket")
    )
    fresh = [one for one in members if not one.merged and one.ticket.duplicate_of_id is None]
    context = {
        "incident": incident,
        "members": members,
        "parent_id": incident.parent_id,
        "first_seen": members[0].ticket.created_at if members else incident.created_at,
        "people": incidents.affected_people(incident),
        "fresh": [one for one in fresh if one.ticket_id != incident.parent_id],
        "can_add": may_add(request.user),
        "can_change": site.has_change_permission(request),
        "can_resolve": incident.state == State.CONFIRMED and incident.parent and may_comment(request.user),
        "suggested_title": incident.parent.title if incident.parent else "",
    }
    return site.triage_page(request, "incident.html", _("Incident"), context)


def _act(site: IncidentAdmin, request: Any, pk: int) -> HttpResponse:
    site.refuse_unless(request, change=True)
    incident = get_object_or_404(Incident, pk=pk)
    action = ACTIONS.get(request.POST.get("action", ""))
    try:
        if action is None:
            raise ValidationError(_("Nothing has been done: the form was incomplete."))
        messages.success(request, action(request, incident))
    except ValidationError as error:
        say_error(request, error)
    return to_page("tickets_ticket_incident", incident.pk)


def _confirm(request: Any, incident: Incident) -> str:
    chosen = request.POST.get("parent", "")
    if chosen == "new":
        taken = incidents.confirm(incident, by=request.user, title=request.POST.get("title", ""))
    else:
        member = (
            incident.members.select_related("ticket")
            .filter(ticket=chosen if chosen.isdecimal() else 0)
            .first()
        )
        if member is None:
            raise ValidationError(_("Choose which ticket stays."))
        taken = incidents.confirm(incident, by=request.user, parent=member.ticket)
    return _merged(request, incident, taken)


def _take_in(request: Any, incident: Incident) -> str:
    return _merged(request, incident, incidents.take_in(incident, by=request.user))


def _merged(request: Any, incident: Incident, taken: incidents.Taken) -> str:
    for sentence in taken.refused:
        messages.warning(request, sentence)
    incident.refresh_from_db()
    if taken.merged and incident.parent and (warning := solved_already(incident.parent.chain_end())):
        messages.warning(request, warning)
    done = ngettext(
        "Done: %(n)d report has been merged. It can be undone at any time.",
        "Done: %(n)d reports have been merged. It can be undone at any time.",
        taken.merged,
    )
    return done % {"n": taken.merged}


def _dismiss(request: Any, incident: Incident) -> str:
    incidents.dismiss(incident, by=request.user)
    return _("Dismissed. These tickets will not be proposed as an incident again.")


def _undo(request: Any, incident: Incident) -> str:
    incidents.undo(incident, by=request.user)
    return _("Undone: every report stands for itself again.")


def _resolve(request: Any, incident: Incident) -> str:
    comment = clean_text(request.POST.get("comment", ""))
    if is_blank(comment):
        raise ValidationError(_("Write the comment that everybody who reported it will read."))
    resolution = clean_text(request.POST.get("resolution", "")) or comment
    incidents.resolve(incident, by=request.user, resolution=resolution, comment=comment)
    return _("Resolved, with one public comment for everybody who reported it.")


ACTIONS = {
    "confirm": _confirm,
    "take_in": _take_in,
    "dismiss": _dismiss,
    "undo": _undo,
    "resolve": _resolve,
}
