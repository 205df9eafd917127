"""The Messages API as a plain ASGI application: `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from assistant.messages_api.errors import ApiError, JsonObject
from assistant.messages_api.models import MODELS, ModelSpec
from assistant.messages_api.replies import Event, Model, collect
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import (
    MAX_BODY_BYTES,
    MessagesRequest,
    parse_body,
    validate_request,
)

logger = logging.getLogger(__name__)

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class MessagesApi:
    """Validates requests and streams what `model` answers. One instance serves one process."""

    def __init__(
        self, model: Model, *, ledger: Ledger | None = None, models: Mapping[str, ModelSpec] = MODELS
    ) -> None:
        self.model = model
        self.models = models
        self.ledger = ledger or Ledger()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        answer = _Answer(send)
        try:
            await self._answer(scope, receive, answer)
        except ApiError as error:
            await answer.error(error)
        except ClientGone:
            pass
        except Exception:
            logger.exception("the answer failed")
            await answer.error(ApiError(500, "api_error", "Internal server error"))

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        route = (scope["method"], scope["path"])
        if route not in (("POST", "/v1/messages"), ("POST", "/v1/messages/count_tokens")):
            raise ApiError(404, "not_found_error", "Not Found")
        counting = scope["path"].endswith("count_tokens")
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        request = self.accept(await _read(receive), headers, counting=counting)
        if counting:
            await answer.json(200, {"input_tokens": request.input_tokens})
            return
        await until_disconnect(receive, self._send_reply(request, answer))

    def accept(self, raw: bytes, headers: Mapping[str, str], *, counting: bool) -> MessagesRequest:
        """The validated request, or ApiError."""
        return validate_request(
            parse_body(raw), headers=headers, ledger=self.ledger, models=self.models, counting=counting
        )

    async def _send_reply(self, request: MessagesRequest, answer: _Answer) -> None:
        events = self.model(request, self.ledger)
        if request.body.get("stream"):
            await answer.stream(events)
        else:
            await answer.json(200, collect([event async for event in events]))


class ClientGone(Exception):
    """The client closed the connection before the answer was complete."""


async def until_disconnect(receive: Receive, work: Awaitable[None]) -> None:
    """Run `work`, but cancel it and raise ClientGone as soon as the client goes away."""
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        await task
    finally:
        for pending in (task, watcher):
            pending.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive) -> bytes:
    """The request body, cut off just over the size limit: more would be refused anyway."""
    body = bytearray()
    more = True
    while more and len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


class _Answer:
    """One HTTP answer: JSON, or server-sent events that may still end in an `error` event."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._streaming = False
        self.request_id = f"req_{secrets.token_hex(12)}"

    async def json(self, status: int, body: JsonObject, headers: Mapping[str, str] | None = None) -> None:
        await self._start(status, "application/json", headers or {})
        await self._send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def stream(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if not self._streaming:  # only now, as the model may refuse before its first event
                await self._start(200, "text/event-stream; charset=utf-8", {"cache-control": "no-cache"})
                self._streaming = True
            await self._send({"type": "http.response.body", "body": encode(event), "more_body": True})
            await asyncio.sleep(0)  # sending does not wait, and a client that went away must be noticed
        await self._send({"type": "http.response.body", "body": b""})

    async def error(self, error: ApiError) -> None:
        body = error.body(self.request_id)
        if not self._streaming:
            await self.json(error.status, body, error.headers)
            return
        await self._send({"type": "http.response.body", "body": encode(body)})

    async def _start(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        fields = {"content-type": content_type, "request-id": self.request_id, **headers}
        pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})


def encode(event: Event) -> bytes:
    """One server-sent event. `raw` events carry bytes as they are, for tests of broken streams."""
    if event["type"] == "raw":
        raw = event["bytes"]
        assert isinstance(raw, bytes)
        return raw
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
