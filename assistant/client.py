"""The one seam to the Messages API: the client, and what each of its faults means to us."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import anthropic
import httpx2
from aiohttp import ClientConnectionError, ClientSession, TCPConnector
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from django.conf import settings
from httpx_aiohttp.httpx2 import AiohttpTransport

from assistant.faults import Fault

CONNECT_SECONDS = 5.0
# Nothing at all on the line for so long, not even the pings a living server sends.
SILENCE_SECONDS = 60.0
# Pings, but no event of the answer for so long.
STALL_SECONDS = 120.0

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[tuple[object, ...], AsyncAnthropic]] = (
    WeakKeyDictionary()
)


def client() -> AsyncAnthropic:
    """The client of this event loop; its connections are shared by all turns of the process."""
    wanted = (settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL, CONNECT_SECONDS, SILENCE_SECONDS)
    loop = asyncio.get_running_loop()
    known = _clients.get(loop)
    if known is None or known[0] != wanted:
        known = _clients[loop] = (wanted, _new_client())
    return known[1]


def answering_model() -> str:
    """Who answers, for the record: what the stand-in says is never put down to Claude, nor charged."""
    return "rehearsal" if settings.ASSISTANT_BACKEND == "rehearsal" else settings.ASSISTANT_MODEL


def _new_client() -> AsyncAnthropic:
    return AsyncAnthropic(
        api_key=settings.ANTHROPIC_API_KEY,
        base_url=settings.ANTHROPIC_BASE_URL or None,
        http_client=DefaultAsyncHttpxClient(transport=AiohttpTransport(client=_session)),
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        max_retries=0,  # we retry ourselves: visibly, and only before the first visible text
    )


def _session() -> ClientSession:
    """Reads a stream of tokens at half the cost of the SDK's own transport.

    With so small a buffer, what comes in between two reads waits in the system and is then read in one piece.
    """
    connector = TCPConnector(ssl=httpx2.create_ssl_context(), limit=0)
    return ClientSession(connector=connector, read_bufsize=1, trust_env=True)


BY_STATUS = {
    400: "bad_request",
    401: "key_refused",
    402: "payment",
    403: "forbidden",
    408: "timeout",
    413: "too_large",
    429: "rate_limited",
    504: "timeout",
    529: "overloaded",
}
# An error event after HTTP 200 has no status of its own.
BY_TYPE = {
    "invalid_request_error": "bad_request",
    "authentication_error": "key_refused",
    "billing_error": "payment",
    "permission_error": "forbidden",
    "not_found_error": "model_unknown",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limited",
    "timeout_error": "timeout",
    "api_error": "server_error",
    "overloaded_error": "overloaded",
}
SIGNATURE = "signature"
PROMPT_TOO_LONG = "prompt_too_long"


def fault_of(error: Exception, *, streaming: bool) -> Fault:
    """What an exception of the SDK or of the transport below it means. `streaming`: the answer had begun."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, anthropic.APIStatusError):
        return _status_fault(error)
    timed_out = isinstance(error, (anthropic.APITimeoutError, httpx2.TimeoutException, TimeoutError))
    if timed_out and not _has_no_connection(error):
        return Fault("stalled" if streaming else "timeout", detail=type(error).__name__)
    if isinstance(error, (anthropic.APIConnectionError, httpx2.TransportError, OSError)):
        return Fault("connection_lost" if streaming else "unreachable", detail=type(error).__name__)
    if isinstance(error, anthropic.CredentialsError):
        return Fault("key_refused", detail=type(error).__name__)
    # Whatever else comes out of reading a stream: the server sent something that is not the protocol.
    return Fault("garbled", detail=type(error).__name__)


def _has_no_connection(error: BaseException | None) -> bool:
    """httpx-aiohttp 0.2 reports a connection that fails at once as one that took too long."""
    while error is not None:
        if isinstance(error, ClientConnectionError):
            return not isinstance(error, TimeoutError)
        error = error.__cause__
    return False


def fault_of_event(event: dict[str, Any]) -> Fault:
    """What an `error` event in a stream that began with HTTP 200 means."""
    kind = _error_type(event)
    code = BY_TYPE.get(kind, "server_error")
    if code == "bad_request":
        code = _kind_of_bad_request(_error(event).get("message"))
    return Fault(code, retry_after=None, detail=f"event {kind}", **_params(code))


def _status_fault(error: anthropic.APIStatusError) -> Fault:
    kind = _error_type(error.body)
    code = _code(error.status_code, kind, error.api_message)
    detail = f"{error.status_code} {kind} {error.request_id or ''}".strip()
    return Fault(code, retry_after=_retry_after(error.response), detail=detail, **_params(code))


def _params(code: str) -> dict[str, str | int]:
    return {"model": settings.ASSISTANT_MODEL} if code == "model_unknown" else {}


def _code(status: int, kind: str, message: object) -> str:
    if status == 404:
        return "model_unknown" if kind == "not_found_error" else "unreachable_api"
    code = BY_STATUS.get(status)
    if code == "bad_request":
        return _kind_of_bad_request(message)
    return code or ("server_error" if status >= 500 else "bad_request")


def _kind_of_bad_request(message: object) -> str:
    """Two rejected requests can be repaired: a history that is too long, thinking that does not fit it."""
    message = str(message or "").lower()
    if "prompt is too long" in message or "context window" in message:
        return PROMPT_TOO_LONG
    if "thinking" in message:
        return SIGNATURE
    return "bad_request"


def _error_type(body: object) -> str:
    return str(_error(body).get("type", ""))[:40]


def _error(body: object) -> dict[str, Any]:
    """The `error` of a body or an event; empty if the server sent something else."""
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def _retry_after(response: httpx2.Response) -> float | None:
    """Seconds the server asks us to wait; None unless it says so in a number that makes sense."""
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None
