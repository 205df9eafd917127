"""The page "Health of the search" for supervisors."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from . import health


class HealthAdmin(admin.ModelAdmin):
    """For the admin of index states."""

    change_list_template = "admin/retrieval/indexstates.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.health_view)
        return [path("health/", view, name="retrieval_health"), *super().get_urls()]

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """The probes ask the embedding provider, which may cost money: only by a button."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        probed = request.method == "POST"
        context = {
            **self.admin_site.each_context(request),
            "title": _("Health of the search"),
            "opts": self.opts,
            "lines": health.run(probes=probed),
            "probed": probed,
        }
        return TemplateResponse(request, "admin/retrieval/health.html", context)
