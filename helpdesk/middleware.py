"""Request lines in the log, and a calm answer while the database cannot be reached."""

import time
import uuid
from collections.abc import Callable
from typing import Any, cast

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from helpdesk.requests import current_request
from helpdesk.startup import is_connection_failure, unreachable_sentence
from tickets.api.problems import problem_response

log = structlog.get_logger("helpdesk.request")

View = Callable[[HttpRequest], HttpResponseBase]


def request_log(get_response: View) -> View:
    """Gives each request an id, binds it to every log line, and writes one line with status and duration."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        started = _begin(request)
        return _end(request, get_response(request), started)

    cast(Any, answer).process_view = _bind_ids
    return answer


def _bind_ids(request: HttpRequest, view: View, args: Any, kwargs: dict[str, Any]) -> None:
    """Every line about a turn, a conversation or a ticket names it."""
    ids = {name: kwargs[name] for name in ("turn_id", "conversation_id", "ticket_id") if name in kwargs}
    match = request.resolver_match
    name = (match and match.url_name) or ""
    for prefix, argument in (("tickets_ticket_", "object_id"), ("api-", "pk")):
        if name.startswith(prefix) and str(kwargs.get(argument, "")).isdecimal():
            ids["ticket_id"] = int(kwargs[argument])  # the admin takes any text for an id
    structlog.contextvars.bind_contextvars(**ids)


def _begin(request: HttpRequest) -> float:
    current_request.set(request)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=uuid.uuid4().hex[:12])
    return time.perf_counter()


def _end(request: HttpRequest, response: HttpResponseBase, started: float) -> HttpResponseBase:
    current_request.set(None)
    response.headers["X-Request-ID"] = structlog.contextvars.get_contextvars().get("request_id", "")
    # The path without its query: what people search for is not for the log.
    write = log.debug if _is_routine(request.path) else log.info
    write(
        "request",
        method=request.method,
        path=request.path,
        status=response.status_code,
        ms=round((time.perf_counter() - started) * 1000),
    )
    return response


def _is_routine(path: str) -> bool:
    """Monitors ask every few seconds, and each page for a dozen files."""
    return path in ("/healthz", "/metrics") or path.startswith(settings.STATIC_URL)


def in_one_thread(get_response: View) -> View:
    """Does nothing, and that in the request's thread, so that all middleware around it stays there too.

    Under ASGI Django would else send every hook of every middleware from the event loop to the thread and
    back: two dozen trips a request, which take longer than all the hooks together.
    """
    return get_response


class DatabaseUnavailableMiddleware:
    """503 instead of 500 while the database is away. Stands outside the session, whose cookie it keeps."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return _keep_cookies(self.get_response(request))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return unavailable(request, exception) if is_connection_failure(exception) else None


def _keep_cookies(response: HttpResponseBase) -> HttpResponseBase:
    """A session that could not be read counts as empty for Django, which would then log the person out."""
    if response.status_code == 503:
        response.cookies.clear()
    return response


def unavailable(request: HttpRequest, error: BaseException) -> HttpResponse:
    log.error("database unreachable", path=request.path, reason=unreachable_sentence(error))
    headers = {"Retry-After": "30"}
    sentence = _("The database cannot be reached at the moment. Please try again in a minute.")
    if is_api(request) or "text/html" not in request.headers.get("Accept", ""):
        return problem_response(request, "unavailable", 503, sentence, **headers)
    return HttpResponse(render_to_string("helpdesk/503.html"), status=503, headers=headers)


def is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")
