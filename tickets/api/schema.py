"""What the OpenAPI document says about each operation, with examples that can be sent as they stand."""

from typing import Any

from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from .authentication import SessionAuthentication, TokenAuthentication
from .problems import KIND, MEDIA_TYPE
from .serializers import (
    CategorySerializer,
    CommentSerializer,
    EventSerializer,
    NewCommentSerializer,
    NewTicketSerializer,
    ProblemSerializer,
    StaleProblemSerializer,
    TicketChangeSerializer,
    TicketSerializer,
    TicketSummarySerializer,
)

# With the type, like the errors: the generator takes the smallest of these keys for the answer proper.
OK = (200, "application/json")
CREATED = (201, "application/json")
ALWAYS = {
    400: "Something in the request is not valid; `errors` says what and where.",
    401: "No token and no session, or a token that does not count (any more).",
    403: "Logged in, but without the permission for this.",
    406: "The API answers in JSON only.",
    429: "Too many requests; `Retry-After` says in how many seconds to go on.",
    503: "The database cannot be reached at the moment.",
}
NOT_FOUND = {404: "There is no such ticket, or you may not see it."}
WRITING = {
    413: "The body is too large.",
    415: "The body is not `application/json`.",
}
REUSED = {422: "The `Idempotency-Key` came with another request before."}

TICKET_EXAMPLE = {
    "id": 4711,
    "title": "Printout fails on second floor",
    "status": "new",
    "priority": "normal",
    "category": "Hardware",
    "reporter": "alice",
    "assignee": None,
    "source": "api",
    "duplicate_of": None,
    "duplicate_check": "not_needed",
    "created_at": "2026-03-02T08:15:00Z",
    "updated_at": "2026-03-02T08:15:00Z",
    "resolved_at": None,
    "version": 1,
    "description": "PRN-0201 shows error E-4711 since this morning.",
    "resolution": "",
}
CHANGED_EXAMPLE = {
    "id": 9001,
    "kind": "changed",
    "field": "status",
    "old": "new",
    "new": "open",
    "actor": "bob",
    "via": "admin",
    "version": 2,
    "created_at": "2026-03-02T08:20:00Z",
}
COMMENT_EXAMPLE = {
    "id": 17,
    "ticket": 4711,
    "author": "bob",
    "body": "The tray was empty.",
    "internal": False,
    "created_at": "2026-03-02T08:30:00Z",
}


def problems(*groups: dict[int, str]) -> dict[Any, OpenApiResponse]:
    """The responses for errors, each as a problem document."""
    texts: dict[int, str] = ALWAYS | {code: text for group in groups for code, text in group.items()}
    return {(code, MEDIA_TYPE): _problem(code, text) for code, text in texts.items()}


def _problem(code: int, text: str) -> OpenApiResponse:
    return OpenApiResponse(ProblemSerializer, text, [INVALID] if code == 400 else [])


def example(name: str, value: object, **options: Any) -> OpenApiExample:
    return OpenApiExample(name, value, **options)


INVALID = example(
    "a title that is missing",
    {
        "type": f"{KIND}invalid",
        "title": "Something in the request is not valid",
        "status": 400,
        "detail": "This field is required.",
        "errors": [{"pointer": "#/title", "detail": "This field is required.", "code": "required"}],
    },
    response_only=True,
)
STALE = OpenApiResponse(
    StaleProblemSerializer,
    "Somebody else has changed the ticket since the version that `If-Match` names.",
    [
        example(
            "somebody was faster",
            {
                "type": f"{KIND}stale-ticket",
                "title": "The ticket has changed",
                "status": 412,
                "detail": "Ticket #4711 has been changed by somebody else in the meantime.",
                "ticket": {**TICKET_EXAMPLE, "status": "open", "version": 2},
                "changes": [CHANGED_EXAMPLE],
            },
            response_only=True,
        )
    ],
)


def answer(serializer: Any, text: str, value: object) -> OpenApiResponse:
    return OpenApiResponse(serializer, text, [example("answer", value, response_only=True)])


def _etag(code: int) -> OpenApiParameter:
    text = "The version of the ticket, for `If-Match`."
    return OpenApiParameter("ETag", str, OpenApiParameter.HEADER, description=text, response=[code])


LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.URI,
    OpenApiParameter.HEADER,
    description="Address of the new ticket.",
    response=[201],
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description=(
        "Makes it safe to send the request again: for 24 hours the same key with the same body gets the same"
        " answer (with `Idempotency-Replayed: true`), and nothing is done twice. Best a new UUID for each"
        " thing to be created."
    ),
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description=(
        "The `ETag` that came with the ticket: the change is made only if nobody else has changed the ticket"
        " since. Without it the named fields are changed whatever happened in between."
    ),
)

CREATE = example(
    "a printer",
    {
        "title": "Printout fails on second floor",
        "description": "PRN-0201 shows error E-4711 since this morning.",
        "priority": "normal",
    },
    request_only=True,
)
SOLVE = example(
    "solve it", {"status": "resolved", "resolution": "The tray was empty: refilled."}, request_only=True
)
COMMENT = example("a note", {"body": "The tray was empty.", "internal": False}, request_only=True)

hidden = extend_schema(exclude=True)

ticket_list = extend_schema(
    operation_id="tickets_list",
    summary="List tickets",
    description="Newest first unless ordered otherwise, without long texts. Conditions are joined by *and*.",
    tags=["tickets"],
    responses={OK: TicketSummarySerializer(many=True), **problems()},
)
ticket_create = extend_schema(
    operation_id="tickets_create",
    summary="Create a ticket",
    description=(
        "The ticket is checked for duplicates by nobody: look with `/api/v1/search/` first. It can be found"
        " by meaning as soon as the worker has seen it, usually within seconds."
    ),
    tags=["tickets"],
    request=NewTicketSerializer,
    examples=[CREATE],
    parameters=[IDEMPOTENCY_KEY, _etag(201), LOCATION],
    responses={
        CREATED: answer(TicketSerializer, "The new ticket.", TICKET_EXAMPLE),
        **problems(WRITING, REUSED),
    },
)
ticket_read = extend_schema(
    operation_id="tickets_read",
    summary="Read a ticket",
    tags=["tickets"],
    parameters=[_etag(200)],
    responses={OK: answer(TicketSerializer, "The ticket.", TICKET_EXAMPLE), **problems(NOT_FOUND)},
)
ticket_change = extend_schema(
    operation_id="tickets_change",
    summary="Change a ticket",
    description="Only the named fields are changed; each change becomes a line of the history.",
    tags=["tickets"],
    request=TicketChangeSerializer,
    examples=[SOLVE],
    parameters=[IF_MATCH, _etag(200)],
    responses={
        OK: answer(TicketSerializer, "The ticket as it is now.", {**TICKET_EXAMPLE, "version": 2}),
        (412, MEDIA_TYPE): STALE,
        **problems(NOT_FOUND, WRITING),
    },
)
comment_list = extend_schema(
    operation_id="comments_list",
    summary="List the comments on a ticket",
    description="Oldest first, with those on the tickets that were merged with it, and with internal notes.",
    tags=["comments"],
    responses={OK: CommentSerializer(many=True), **problems(NOT_FOUND)},
)
comment_create = extend_schema(
    operation_id="comments_create",
    summary="Comment on a ticket",
    description="On a duplicate the comment goes to where it was merged into; `ticket` says where that is.",
    tags=["comments"],
    request=NewCommentSerializer,
    examples=[COMMENT],
    parameters=[IDEMPOTENCY_KEY],
    responses={
        CREATED: answer(CommentSerializer, "The comment.", COMMENT_EXAMPLE),
        **problems(NOT_FOUND, WRITING, REUSED),
    },
)
event_list = extend_schema(
    operation_id="events_list",
    summary="Read the history of a ticket",
    description="Oldest first. Nothing in it is ever changed.",
    tags=["tickets"],
    responses={OK: EventSerializer(many=True), **problems(NOT_FOUND)},
)
category_list = extend_schema(
    operation_id="categories_list",
    summary="List the categories",
    tags=["categories"],
    responses={OK: CategorySerializer(many=True), **problems()},
)


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token that an administrator makes under *API tokens*.",
        }


class BrowserSession(SessionScheme):
    target_class = SessionAuthentication  # type: ignore[assignment]


def close_requests(result: dict[str, Any], generator: object, **kwargs: Any) -> dict[str, Any]:
    """A hook of the generator: bodies take no other members than those listed, see `StrictSerializer`."""
    for name, component in result["components"]["schemas"].items():
        if name.endswith("Request"):
            component["additionalProperties"] = False
    return result
