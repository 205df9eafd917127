"""The events of one streamed answer, and the message that they make.

The SDK sends the request and names its faults; the events are read here. Its own reading builds a pydantic
model for each token, which takes as long as all the rest of a turn: two hundred conversations at once would
need three processors for it. Protocol: docs.anthropic.com, "Streaming Messages".
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from assistant.history import THINKING, Block

Event = dict[str, Any]

BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
DATA = re.compile(rb"(?:\A|[\r\n])data: ?([^\r\n]*)")
# What a delta adds to, by its type: the key in the delta, and in the block.
GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """The events in a body of server-sent events. Raises `ValueError` for data that is not JSON."""
    buffer = b""
    async for chunk in chunks:
        *messages, buffer = BLANK_LINE.split(buffer + chunk)
        for message in messages:
            if data := DATA.findall(message):
                yield json.loads(b"\n".join(data))


@dataclass(slots=True)
class IncomingMessage:
    """The assistant's message so far, with its blocks exactly as they came."""

    started: bool = False
    complete: bool = False
    stop_reason: str = ""
    content: list[Block] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)  # tool uses whose arguments are no JSON object
    usage: dict[str, Any] = field(default_factory=dict)
    _arguments: dict[int, str] = field(default_factory=dict)

    def take(self, event: Event) -> str:
        """Add one event. Returns what it adds to the visible text.

        Raises `KeyError`, `IndexError`, `TypeError` or `AttributeError` for what is no event of the protocol;
        unknown types of events and deltas are passed over, as the protocol asks.
        """
        match event["type"]:
            case "message_start":
                self.started = True
                self._count(event["message"]["usage"])
            case "content_block_start":
                self.content.append(event["content_block"])
            case "content_block_delta":
                return self._grow(event["index"], event["delta"])
            case "message_delta":
                self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
                self._count(event.get("usage") or {})
            case "message_stop":
                self._finish()
        return ""

    def _grow(self, index: int, delta: dict[str, Any]) -> str:
        block = self.content[index]
        if key := GROWING.get(delta["type"]):
            block[key] = block.get(key, "") + delta[key]
        elif delta["type"] == "input_json_delta":
            self._arguments[index] = self._arguments.get(index, "") + delta["partial_json"]
        elif delta["type"] == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        return str(delta["text"]) if delta["type"] == "text_delta" else ""

    def _count(self, usage: dict[str, Any]) -> None:
        self.usage |= {name: count for name, count in usage.items() if count is not None}

    def _finish(self) -> None:
        for index, block in enumerate(self.content):
            if block["type"] == "tool_use":
                self._read_arguments(index, block)
        self.content = [block for block in self.content if _is_whole(block)]
        self.complete = True

    def _read_arguments(self, index: int, block: Block) -> None:
        """No arguments at all are sent as nothing; whatever is broken off or no object is unreadable."""
        try:
            arguments = json.loads(self._arguments.get(index) or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            self.unreadable.add(str(block["id"]))
            arguments = {}
        block["input"] = arguments


def _is_whole(block: Block) -> bool:
    """Thinking that was cut off has no signature, and without one the API does not take it back."""
    return block["type"] not in THINKING or bool(block.get("signature") or block.get("data"))
