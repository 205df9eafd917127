"""The ticket admin with everything that knows which tickets are alike."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from tickets.admin import TicketAdmin
from tickets.models import Ticket

from . import records_admin  # noqa: F401 (registers the read-only tables)
from .judging import merge, unmerge
from .meaning_admin import MeaningAdmin
from .models import Incident
from .triage.entry import EntryAdmin, EntryForm, suggested
from .triage.inbox import InboxAdmin
from .triage.incident_pages import IncidentAdmin, incident_of
from .triage.panel import PanelAdmin

admin.site.unregister(Ticket)


@admin.register(Ticket)
class SimilarTicketAdmin(MeaningAdmin, PanelAdmin, EntryAdmin, InboxAdmin, IncidentAdmin, TicketAdmin):
    form = EntryForm
    change_form_template = "admin/retrieval/ticket_form.html"
    change_list_template = "admin/retrieval/ticket_list.html"

    class Media:
        css = {"all": ("retrieval/triage.css",)}

    def render_change_form(
        self, request: Any, context: dict[str, Any], add: bool = False, change: bool = False,
        form_url: str = "", obj: Ticket | None = None,
    ) -> HttpResponse:  # fmt: skip
        if obj is None:
            form = context["adminform"].form
            context |= suggested(form.suggested, form.data.get("duplicate_note", ""))
        else:
            context["incident"] = incident_of(obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def merge(self, duplicate: Ticket, target: Ticket, by: User) -> None:
        merge(duplicate, target, by=by)

    def unmerge(self, duplicate: Ticket, by: User) -> None:
        unmerge(duplicate, by=by)

    def save_model(self, request: Any, obj: Ticket, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "status" in form.changed_data and obj.is_resolved:
            self._offer_to_tell_everybody(request, obj)

    def _offer_to_tell_everybody(self, request: HttpRequest, parent: Ticket) -> None:
        incident = parent.incidents.filter(state=Incident.State.CONFIRMED).first()
        if incident is not None:
            page = reverse("admin:tickets_ticket_incident", args=[incident.pk])
            sentence = _(
                "With it, all reports of this incident are resolved. A public comment reaches everybody:"
            )
            messages.info(request, format_html('{} <a href="{}">{}</a>', sentence, page, _("Incident")))
