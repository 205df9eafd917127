"""What a model answers, and the stream events that carry it. docs: build-with-claude/streaming."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from assistant.messages_api.errors import JsonObject
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import MessagesRequest, count_tokens

Event = JsonObject


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning before an answer; empty text stands for thinking whose display is omitted."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A `tool_use` block. `partial_json` replaces its streamed JSON, for a call that breaks off."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)
    id: str = ""
    partial_json: str | None = None


Block = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Without `stop_reason` it is `tool_use` if there is a tool call, else `end_turn`."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str = ""
    stop_sequence: str | None = None
    stop_details: Mapping[str, object] | None = None
    usage: Mapping[str, int] = field(default_factory=dict)

    def ending(self) -> str:
        called = any(isinstance(block, ToolCall) for block in self.blocks)
        return self.stop_reason or ("tool_use" if called else "end_turn")


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds before the first token and before each further one."""

    first: float = 0.0
    token: float = 0.0


AT_ONCE = Pace()


class Model(Protocol):
    """Answers a valid request by events, or raises ApiError: an HTTP error, after events an `error` event."""

    def __call__(self, request: MessagesRequest, ledger: Ledger) -> AsyncIterator[Event]: ...


async def play(
    reply: Reply, request: MessagesRequest, ledger: Ledger, pace: Pace = AT_ONCE
) -> AsyncIterator[Event]:
    """The events of `reply` at the given pace, from message_start to message_stop."""
    usage = _usage(reply, request)
    ticks = _Ticks(pace)
    yield _message_start(request, usage)
    yield {"type": "ping"}
    answer: list[JsonObject] = []
    for index, block in enumerate(reply.blocks):
        finished = _finished_block(block, request, ledger, answer)
        for event in _block_events(index, block, finished):
            if event["type"] == "content_block_delta":
                await ticks.next()
            yield event
        answer.append(finished)
    ledger.remember(answer, paused=reply.ending() == "pause_turn")
    yield {"type": "message_delta", "delta": _ending(reply), "usage": usage}
    yield {"type": "message_stop"}


class _Ticks:
    """The moments at which tokens are due. Being late once does not delay the rest."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._due = asyncio.get_running_loop().time() + pace.first

    async def next(self) -> None:
        wait = self._due - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)
        self._due += self._pace.token


def collect(events: list[Event]) -> JsonObject:
    """The message that a list of stream events amounts to, for answers without streaming."""
    message: JsonObject = {}
    content: list[JsonObject] = []
    input_json = ""
    for event in events:
        if event["type"] == "message_start":
            message = {**_object(event["message"]), "content": content}
        elif event["type"] == "content_block_start":
            content.append(dict(_object(event["content_block"])))
            input_json = ""
        elif event["type"] == "content_block_delta":
            input_json += _append(_object(event["delta"]), content[-1])
        elif event["type"] == "content_block_stop" and input_json:
            content[-1]["input"] = _parsed(input_json)
        elif event["type"] == "message_delta":
            message |= _object(event["delta"]) | {"usage": event["usage"]}
    return message


def _append(delta: JsonObject, block: JsonObject) -> str:
    """Lengthen the block by a delta; a piece of input JSON is returned instead."""
    if delta["type"] == "input_json_delta":
        return str(delta["partial_json"])
    key = str(delta["type"]).removesuffix("_delta")
    block[key] = str(block[key]) + str(delta[key])
    return ""


def _parsed(input_json: str) -> object:
    """The input of a call; empty if the call broke off in the middle."""
    try:
        return json.loads(input_json)
    except json.JSONDecodeError:
        return {}


def _object(value: object) -> JsonObject:
    assert isinstance(value, dict)
    return value


def _message_start(request: MessagesRequest, usage: JsonObject) -> Event:
    message: JsonObject = {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": request.spec.name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**usage, "output_tokens": 1},
    }
    return {"type": "message_start", "message": message}


def _usage(reply: Reply, request: MessagesRequest) -> JsonObject:
    output = sum(count_tokens(_spoken(block)) for block in reply.blocks)
    return {
        "input_tokens": request.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": max(1, output),
        **reply.usage,
    }


def _ending(reply: Reply) -> JsonObject:
    return {
        "stop_reason": reply.ending(),
        "stop_sequence": reply.stop_sequence,
        "stop_details": reply.stop_details,
    }


def _spoken(block: Block) -> str:
    return json.dumps(dict(block.input)) if isinstance(block, ToolCall) else block.text


def _finished_block(
    block: Block, request: MessagesRequest, ledger: Ledger, answer: list[JsonObject]
) -> JsonObject:
    """The block as it will stand in the finished message."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Thinking):
        signature = ledger.sign(block.text, request.body, answer)
        return {"type": "thinking", "thinking": block.text, "signature": signature}
    identifier = block.id or f"toolu_{secrets.token_hex(12)}"
    return {"type": "tool_use", "id": identifier, "name": block.name, "input": dict(block.input)}


_EMPTY: JsonObject = {"text": "", "thinking": "", "signature": "", "input": {}}


def _block_events(index: int, block: Block, finished: JsonObject) -> Iterator[Event]:
    empty = {key: _EMPTY.get(key, value) for key, value in finished.items()}
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in _deltas(block, finished):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _deltas(block: Block, finished: JsonObject) -> Iterator[JsonObject]:
    if isinstance(block, Text):
        for piece in tokens(block.text):
            yield {"type": "text_delta", "text": piece}
    elif isinstance(block, Thinking):
        for piece in tokens(block.text):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": finished["signature"]}
    else:
        text = block.partial_json
        if text is None:
            text = json.dumps(dict(block.input), ensure_ascii=False) if block.input else ""
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in tokens(text):
            yield {"type": "input_json_delta", "partial_json": piece}


def tokens(text: str) -> list[str]:
    """`text` in pieces about as long as tokens; joined they are the text again."""
    return re.findall(r"\s*\S{1,6}|\s+$", text)
