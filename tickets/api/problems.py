"""Every error of the API as a problem document (RFC 9457), in the language of the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as ModelValidationError
from django.http import Http404, HttpRequest, JsonResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from tickets.models import StaleTicket

MEDIA_TYPE = "application/problem+json"
KIND = "urn:helpdesk:problem:"

TITLES = {
    "invalid": _("Something in the request is not valid"),
    "parse_error": _("The body cannot be read"),
    "authentication_failed": _("Not logged in"),
    "not_authenticated": _("Not logged in"),
    "permission_denied": _("Not allowed"),
    "not_found": _("Not found"),
    "method_not_allowed": _("Method not allowed"),
    "not_acceptable": _("No such representation"),
    "stale_ticket": _("The ticket has changed"),
    "too_large": _("The body is too large"),
    "unsupported_media_type": _("The type of the body is not supported"),
    "idempotency_key_reused": _("The Idempotency-Key was used for another request"),
    "throttled": _("Too many requests"),
    "unavailable": _("Not available at the moment"),
    "error": _("Internal error"),
}


class BodyTooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(gettext("The body may have at most %(limit)d bytes.") % {"limit": limit})


class KeyReused(exceptions.APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "idempotency_key_reused"
    default_detail = _(
        "This Idempotency-Key came with another request before. Send a new key with each new request."
    )


class InvalidHeader(exceptions.ValidationError):
    """`InvalidHeader({"Idempotency-Key": "…"})`"""


def problem(code: str, status_code: int, detail: object, **members: Any) -> dict[str, Any]:
    return {
        "type": KIND + code.replace("_", "-"),
        "title": str(TITLES.get(code, TITLES["error"])),
        "status": status_code,
        "detail": str(detail),
        **members,
    }


def problem_response(
    request: HttpRequest, code: str, status_code: int, detail: object, **headers: str
) -> JsonResponse:
    """For errors that happen outside the API's own views."""
    body = problem(code, status_code, detail)
    return JsonResponse(body, status=status_code, content_type=MEDIA_TYPE, headers=headers)


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """The problem document for an error that a request may cause; None for a fault of ours."""
    exc = _as_api_exception(exc)
    _answer_in_json(context["request"])
    if isinstance(exc, StaleTicket):
        return _stale(exc)
    if isinstance(exc, exceptions.ValidationError):
        return _invalid(exc, context["request"])
    return _plain(exc) if isinstance(exc, exceptions.APIException) else None


def _answer_in_json(request: Request) -> None:
    """Whatever the view renders otherwise: the pages of the documentation are HTML, the schema is YAML."""
    request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type


def _as_api_exception(exc: Exception) -> Exception:
    if isinstance(exc, Http404):
        return exceptions.NotFound()
    if isinstance(exc, DjangoPermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(exc, ModelValidationError):
        return exceptions.ValidationError(_messages(exc))
    return exc


def _messages(exc: ModelValidationError) -> dict[str, list[exceptions.ErrorDetail]]:
    fields = exc.error_dict if hasattr(exc, "error_dict") else {NON_FIELD_ERRORS: exc.error_list}
    return {
        api_settings.NON_FIELD_ERRORS_KEY if name == NON_FIELD_ERRORS else name: [
            exceptions.ErrorDetail(message, error.code or "invalid")
            for error in errors
            for message in error.messages
        ]
        for name, errors in fields.items()
    }


def _respond(body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, body["status"], headers=headers, content_type=MEDIA_TYPE)


def _plain(exc: exceptions.APIException) -> Response:
    headers = {}
    if getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = exc.auth_header  # type: ignore[attr-defined]
    if getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(exc.wait))  # type: ignore[attr-defined]
    return _respond(problem(exc.default_code, exc.status_code, exc.detail), headers)


def _invalid(exc: exceptions.ValidationError, request: Request) -> Response:
    errors = list(_flat(exc.detail, _place(exc, request)))
    return _respond(problem("invalid", exc.status_code, errors[0]["detail"], errors=errors))


def _place(exc: exceptions.ValidationError, request: Request) -> str:
    if isinstance(exc, InvalidHeader):
        return "header"
    return "parameter" if request.method in ("GET", "HEAD") else "pointer"


def _flat(detail: Any, place: str, path: tuple[str, ...] = ()) -> Iterator[dict[str, str]]:
    """The nested details of the framework as one list, each with where it belongs."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            own = () if name == api_settings.NON_FIELD_ERRORS_KEY else (str(name),)
            yield from _flat(inner, place, path + own)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _flat(inner, place, path)
    else:
        yield {
            place: _located(place, path),
            "detail": str(detail),
            "code": getattr(detail, "code", "invalid"),
        }


def _located(place: str, path: tuple[str, ...]) -> str:
    """A JSON pointer (RFC 6901) into the body, or the name of a parameter or header."""
    if place != "pointer":
        return ".".join(path)
    return "#" + "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def _stale(exc: StaleTicket) -> Response:
    from .serializers import EventSerializer, TicketSerializer, etag_of

    body = problem(
        "stale_ticket",
        status.HTTP_412_PRECONDITION_FAILED,
        exc,
        ticket=TicketSerializer(exc.current).data,
        changes=EventSerializer(exc.events, many=True).data,
    )
    return _respond(body, {"ETag": etag_of(exc.current)})
