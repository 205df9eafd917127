"""What the pages of triage share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from tickets.language import detect_language
from tickets.models import Ticket

LANGUAGE_CHARS = 1_000


class TriageAdmin(admin.ModelAdmin):
    """A part of the ticket admin with pages of its own."""

    def own_url(self, route: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
        return path(route, self.admin_site.admin_view(view), name=name)

    def refuse_unless(self, request: HttpRequest, *, change: bool) -> None:
        allowed = self.has_change_permission if change else self.has_view_permission
        if not allowed(request):
            raise PermissionDenied

    def triage_page(
        self, request: HttpRequest, template: str, title: str, context: dict[str, Any]
    ) -> TemplateResponse:
        base = {
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "has_change_permission": self.has_change_permission(request),
        }
        everything = self.admin_site.each_context(request) | base | context
        return TemplateResponse(request, f"admin/retrieval/{template}", everything)


def to_page(name: str, *args: Any, query: str = "") -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse(f"admin:{name}", args=args) + query)


def say_error(request: HttpRequest, error: ValidationError) -> None:
    messages.error(request, " ".join(error.messages))


def language_of_ticket(ticket: Ticket) -> str:
    """Its ISO code, "" if unknown."""
    return detect_language(f"{ticket.title}\n{ticket.description[:LANGUAGE_CHARS]}")
