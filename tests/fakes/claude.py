"""ScriptedClaude: the Messages API on a loopback port, answering what a test has prepared.

    with ScriptedClaude() as claude:
        claude.reply(Thinking("Let me look."), ToolCall("find_similar_tickets", {"query": "printer"}))
        claude.reply("Is it #12?")
        client = AsyncAnthropic(base_url=claude.base_url, api_key="test", max_retries=0)

Each call to `reply` or `fail` prepares the answer to one request, in order; `answer_with` sets a function
for requests beyond those. Every request is validated as the real API would do it. A request that is
refused, or one for which nothing was prepared, makes the `with` block fail at its end, unless the test
expects it and empties `claude.violations`.

What was sent is in `claude.requests`: `.body`, `.headers`, `.path`, and `.closed_by_client`, an event that
is set when the client closes the connection before the answer is complete.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from assistant.messages_api.errors import STATUS_OF_TYPE, ApiError
from assistant.messages_api.replies import AT_ONCE, Block, Event, Pace, Reply, Text, Thinking, ToolCall, play
from assistant.messages_api.server import ClientGone, MessagesApi, Receive, Scope, Send
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import MessagesRequest, parse_body

__all__ = [
    "Drop",
    "EndEarly",
    "ErrorEvent",
    "Hang",
    "HttpError",
    "Malformed",
    "Pace",
    "RawBody",
    "Replay",
    "Reply",
    "ScriptedClaude",
    "Text",
    "Thinking",
    "ToolCall",
]


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error answer instead of a stream; the status follows from the type unless given."""

    type: str = "api_error"
    message: str = "scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An `error` event after HTTP 200 and `after` events of the reply."""

    after: int = 1
    type: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection is reset after so many events; 0: before any header."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more comes after so many events (0: not even a header) but a ping every `ping` seconds."""

    after: int = 0
    ping: float = 0.0


@dataclass(frozen=True, slots=True)
class EndEarly:
    """The body ends properly after so many events, without message_stop."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class Malformed:
    """A piece of event stream that is not JSON, after so many events; then the reply goes on."""

    after: int = 1
    data: bytes = b'event: content_block_delta\ndata: {"type": "content_blo\n\n'


@dataclass(frozen=True, slots=True)
class RawBody:
    """Any HTTP answer, by default the HTML page of a proxy; empty `body` with 200: an empty stream."""

    status: int = 502
    body: bytes = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True)
class Replay:
    """The very same events, ids included, as in an earlier answer; -1: the latest that had any."""

    index: int = -1


Fault = HttpError | ErrorEvent | Drop | Hang | EndEarly | Malformed | RawBody | Replay


@dataclass(frozen=True, slots=True)
class Step:
    """The prepared answer to one request."""

    reply: Reply
    fault: Fault | None = None
    pace: Pace = AT_ONCE


@dataclass(slots=True)
class Exchange:
    """One request as it arrived, and the events it was answered with."""

    path: str
    headers: Mapping[str, str]
    client: tuple[str, int]
    send: Send
    body: dict[str, Any] = field(default_factory=dict)
    received_at: float = field(default_factory=time.monotonic)
    events: list[Event] = field(default_factory=list)
    finished: threading.Event = field(default_factory=threading.Event)
    closed_by_client: threading.Event = field(default_factory=threading.Event)

    def tool_results(self) -> list[dict[str, Any]]:
        """The tool_result blocks of the last message."""
        messages: Any = self.body["messages"]
        content = messages[-1]["content"]
        return [b for b in content if b["type"] == "tool_result"] if isinstance(content, list) else []


_current: ContextVar[Exchange] = ContextVar("exchange")


class ScriptedClaude:
    """See the module's docstring. Thread-safe enough for tests: steps are prepared before they are needed."""

    def __init__(self, *, pace: Pace = AT_ONCE) -> None:
        self.pace = pace
        self.requests: list[Exchange] = []
        self.counts: list[Exchange] = []
        self.violations: list[ApiError] = []
        self._steps: deque[Step] = deque()
        self._beyond: Callable[[MessagesRequest], Step | Reply] | None = None
        self._transports: dict[tuple[str, int], asyncio.Transport] = {}
        self._api = _RecordingApi(self)
        self._stopping = False
        # The protocol is named because asyncio turns off Nagle's algorithm only where it sees TCP.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            http=self._protocol(),
            ws="none",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
        )
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def reply(
        self,
        *blocks: Block | str,
        stop_reason: str = "",
        usage: Mapping[str, int] | None = None,
        fault: Fault | None = None,
        pace: Pace | None = None,
        **ending: Any,
    ) -> Self:
        """Prepare one answer: blocks (a string is a text block), its ending, and a fault on the way."""
        parts = tuple(Text(block) if isinstance(block, str) else block for block in blocks)
        reply = Reply(parts, stop_reason=stop_reason, usage=usage or {}, **ending)
        self._steps.append(Step(reply, fault, pace or self.pace))
        return self

    def fail(self, fault: Fault) -> Self:
        """Prepare a fault; one that comes after some events cuts into a short text."""
        return self.reply("This answer never arrives in full.", fault=fault)

    def answer_with(self, function: Callable[[MessagesRequest], Step | Reply]) -> Self:
        """Answer requests beyond the prepared ones by a function of the request."""
        self._beyond = function
        return self

    @property
    def unused(self) -> int:
        """How many prepared answers nobody has asked for yet."""
        return len(self._steps)

    def start(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._server.started:
            if time.monotonic() > deadline:
                raise RuntimeError("ScriptedClaude did not start within 10 s")
            time.sleep(0.005)
        return self

    def stop(self) -> None:
        self._stopping = True
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self.violations:
            raise AssertionError("ScriptedClaude refused: " + "; ".join(map(str, self.violations)))

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        exchange = Exchange(scope["path"], headers, tuple(scope["client"]), send)
        (self.counts if scope["path"].endswith("count_tokens") else self.requests).append(exchange)
        _current.set(exchange)
        await self._api(scope, receive, send)

    async def model(self, request: MessagesRequest, ledger: Ledger) -> AsyncIterator[Event]:
        """Serve the next step and note what became of it."""
        exchange = _current.get()
        try:
            async for event in self._perform(self._next_step(request), request, ledger, exchange):
                exchange.events.append(event)
                yield event
            exchange.finished.set()
        except (asyncio.CancelledError, GeneratorExit):
            if not self._stopping:
                exchange.closed_by_client.set()
            raise

    def _next_step(self, request: MessagesRequest) -> Step:
        if self._steps:
            return self._steps.popleft()
        if self._beyond is None:
            error = ApiError(500, "api_error", "ScriptedClaude has no answer left for this request")
            self.violations.append(error)
            raise error
        step = self._beyond(request)
        return step if isinstance(step, Step) else Step(step, pace=self.pace)

    async def _perform(
        self, step: Step, request: MessagesRequest, ledger: Ledger, exchange: Exchange
    ) -> AsyncIterator[Event]:
        fault = step.fault
        if isinstance(fault, HttpError):
            status = fault.status or STATUS_OF_TYPE[fault.type]
            raise ApiError(status, fault.type, fault.message, fault.headers)
        if isinstance(fault, RawBody):
            await _send_raw(exchange.send, fault)
            raise ClientGone
        if isinstance(fault, Replay):
            answered = [earlier for earlier in self.requests if earlier.events]
            for event in list(answered[fault.index].events):
                yield event
            return
        count = 0
        async for event in play(step.reply, request, ledger, step.pace):
            if fault is not None and count == fault.after:
                async for broken in self._break(fault, exchange):
                    yield broken
                if isinstance(fault, EndEarly):
                    return
            count += 1
            yield event

    async def _break(
        self, fault: ErrorEvent | Drop | Hang | EndEarly | Malformed, exchange: Exchange
    ) -> AsyncIterator[Event]:
        match fault:
            case ErrorEvent():
                raise ApiError(STATUS_OF_TYPE[fault.type], fault.type, fault.message)
            case Drop():
                self._transports[exchange.client].abort()
                exchange.finished.set()
                raise ClientGone
            case Hang(ping=0):
                await asyncio.Event().wait()
            case Hang():
                while True:
                    await asyncio.sleep(fault.ping)
                    yield {"type": "ping"}
            case Malformed():
                yield {"type": "raw", "bytes": fault.data}

    def _protocol(self) -> type[H11Protocol]:
        """uvicorn's protocol, which also tells us the transport of each client."""
        transports = self._transports

        class Tracked(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                transports[transport.get_extra_info("peername")[:2]] = transport
                super().connection_made(transport)

        return Tracked


class _RecordingApi(MessagesApi):
    """Notes each request and each refusal."""

    def __init__(self, scripted: ScriptedClaude) -> None:
        super().__init__(scripted.model)
        self._scripted = scripted

    def accept(self, raw: bytes, headers: Mapping[str, str], *, counting: bool) -> MessagesRequest:
        try:
            body = parse_body(raw)
            if isinstance(body, dict):
                _current.get().body = body
            return super().accept(raw, headers, counting=counting)
        except ApiError as error:
            self._scripted.violations.append(error)
            raise


async def _send_raw(send: Send, answer: RawBody) -> None:
    headers = [(b"content-type", answer.content_type.encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
