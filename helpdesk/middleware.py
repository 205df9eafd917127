"""Request lines in the log, and a calm answer while the database cannot be reached."""

import time
import uuid

import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from helpdesk.startup import is_connection_failure

log = structlog.get_logger("helpdesk.request")


class RequestLogMiddleware(MiddlewareMixin):
    """Gives each request an id, binds it to every log line, and writes one line with status and duration."""

    def process_request(self, request: HttpRequest) -> None:
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=uuid.uuid4().hex[:12])
        request.META["helpdesk.started"] = time.perf_counter()

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        request_id = structlog.contextvars.get_contextvars().get("request_id", "")
        response.headers["X-Request-ID"] = request_id
        milliseconds = round((time.perf_counter() - request.META.get("helpdesk.started", time.perf_counter())) * 1000)
        # The path without its query: what people search for is not for the log.
        log.info("request", method=request.method, path=request.path, status=response.status_code, ms=milliseconds)
        return response


class DatabaseUnavailableMiddleware(MiddlewareMixin):
    """503 instead of 500 while the database is away: the pages come back without a restart."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_connection_failure(exception):
            return None
        log.error("database unreachable", path=request.path)
        return unavailable(request)


def unavailable(request: HttpRequest) -> HttpResponse:
    sentence = _("The database cannot be reached at the moment. Please try again in a minute.")
    if request.path.startswith("/api/") or "application/json" in request.headers.get("Accept", ""):
        return JsonResponse({"detail": sentence}, status=503, headers={"Retry-After": "30"})
    page = f"<!doctype html><meta charset=utf-8><title>503</title><p>{sentence}</p>"
    return HttpResponse(page, status=503, headers={"Retry-After": "30"})
