"""The few addresses of the site itself."""

import sys
from typing import Any

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from helpdesk import health
from helpdesk.middleware import is_api, unavailable
from helpdesk.startup import is_connection_failure
from tickets.api.problems import problem_response


@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """200 or 503 with the reasons. `?part=web` asks only whether this process reaches its database."""
    if request.GET.get("part") == "web":
        reason = health.database_state()["reason"]
        return _health({"status": "unavailable" if reason else "ok", "reasons": [reason] if reason else []})
    return _health(health.report())


def _health(report: dict[str, Any]) -> JsonResponse:
    status = 200 if report["status"] == "ok" else 503
    return JsonResponse(report, status=status, headers={"Cache-Control": "no-store"})


@require_GET
def favicon(request: HttpRequest) -> HttpResponse:
    """For whatever asks without reading the page."""
    return redirect(static("helpdesk/mark.svg"))


@require_GET
def ticket_redirect(request: HttpRequest, ticket_id: int) -> HttpResponse:
    """The short address of a ticket that people pass on; the admin asks for the login and the permission."""
    return redirect("admin:tickets_ticket_change", ticket_id)


@require_GET
def admin_login(request: HttpRequest) -> HttpResponse:
    """The admin has no login of its own: strangers log in at the site's. Whoever has logged in and is sent
    here all the same may not enter, and another login would only send them back."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied
    return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME, reverse("admin:index")), settings.LOGIN_URL)


# Django's own answers to 400 and 500 look for the CSRF token in the form, which fails once more where the
# form cannot be read.


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_response(request, "invalid", 400, _("The request cannot be understood."))
    return render(request, "400.html", status=400)


def server_error(request: HttpRequest) -> HttpResponse:
    """Errors outside a view, in a middleware for example, where `process_exception` is not asked."""
    error = sys.exc_info()[1]
    if error is not None and is_connection_failure(error):
        return unavailable(request, error)
    if is_api(request):
        sentence = _("Something went wrong on our side. It has been logged.")
        return problem_response(request, "error", 500, sentence)
    return HttpResponse(render_to_string("500.html"), status=500)
