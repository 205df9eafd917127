"""Request lines in the log, and a calm answer while the database cannot be reached."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from helpdesk.startup import is_connection_failure

log = structlog.get_logger("helpdesk.request")

View = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def request_log(get_response: View) -> View:
    """Gives each request an id, binds it to every log line, and writes one line with status and duration."""

    async def answer_async(request: HttpRequest) -> HttpResponseBase:
        started = _begin()
        return _end(request, await get_response(request), started)

    def answer(request: HttpRequest) -> HttpResponseBase:
        started = _begin()
        return _end(request, get_response(request), started)

    return answer_async if iscoroutinefunction(get_response) else answer


def _begin() -> float:
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=uuid.uuid4().hex[:12])
    return time.perf_counter()


def _end(request: HttpRequest, response: HttpResponseBase, started: float) -> HttpResponseBase:
    response.headers["X-Request-ID"] = structlog.contextvars.get_contextvars().get("request_id", "")
    # The path without its query: what people search for is not for the log.
    log.info(
        "request",
        method=request.method,
        path=request.path,
        status=response.status_code,
        ms=round((time.perf_counter() - started) * 1000),
    )
    return response


class DatabaseUnavailableMiddleware(MiddlewareMixin):
    """503 instead of 500 while the database is away: the pages come back without a restart."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not is_connection_failure(exception):
            return None
        return unavailable(request)


def unavailable(request: HttpRequest) -> HttpResponse:
    log.error("database unreachable", path=request.path)
    headers = {"Retry-After": "30"}
    if request.path.startswith("/api/") or "text/html" not in request.headers.get("Accept", ""):
        sentence = _("The database cannot be reached at the moment. Please try again in a minute.")
        return JsonResponse({"detail": sentence}, status=503, headers=headers)
    response = render(request, "helpdesk/503.html", status=503)
    response["Retry-After"] = headers["Retry-After"]
    return response
