"""From stored messages to the `messages` of a request: valid, within the budget, and never changed
afterwards.

The API binds thinking to everything that stands before it, and its cache works on equal prefixes. So a
history only ever grows; where it has to be shortened, whole turns go, oldest first, and what was thought
before that moment is sent without its thinking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from assistant import notes
from assistant.models import Message
from assistant.prompts import SYSTEM
from assistant.tools.definitions import DEFINITIONS

Block = dict[str, Any]
THINKING = frozenset({"thinking", "redacted_thinking"})

# Share of the window that input may fill before a turn, the rest being for its tool results and its answer,
# and the share that is left after shortening, so that it does not happen again with every message.
FILLED = 0.8
KEPT = 0.5
# No tokenizer needs more tokens than one for two bytes of ordinary text, so this errs high.
BYTES_PER_TOKEN = 2


@dataclass(frozen=True, slots=True)
class Row:
    """A stored message as the request needs it. `group` is the first turn of its chain of retries."""

    id: int
    group: int
    role: str
    content: list[Block]


@dataclass(slots=True)
class History:
    """The rows that are sent, and what has been left out before them."""

    rows: list[Row]
    thinking_from: int = 0
    left_out: int = 0

    def messages(self) -> list[dict[str, Any]]:
        """Alternating messages; consecutive ones of the same role are merged."""
        merged: list[dict[str, Any]] = []
        if self.left_out:
            merged.append({"role": "user", "content": [_text(notes.left_out(self.left_out))]})
        for row in self.rows:
            content = self._sendable(row)
            if not content:
                continue
            if merged and merged[-1]["role"] == row.role:
                merged[-1]["content"] = merged[-1]["content"] + content
            else:
                merged.append({"role": row.role, "content": content})
        return [_without_last_thinking(message) for message in merged]

    def _sendable(self, row: Row) -> list[Block]:
        """The blocks as they came, but for what the API would reject: blank text, thinking that no longer
        fits.
        """
        keep_thinking = row.id >= self.thinking_from
        sendable = [
            block
            for block in row.content
            if (keep_thinking or block.get("type") not in THINKING) and not _is_blank_text(block)
        ]
        return sendable if any(block.get("type") not in THINKING for block in sendable) else []

    def groups(self) -> list[int]:
        return list(dict.fromkeys(row.group for row in self.rows))

    def first_kept_group(self, tokens: int) -> int | None:
        """The oldest turn to keep so that `tokens` for all rows shrink to the share that is kept.

        None if there is no older turn that could go. The current turn always stays whole.
        """
        groups = self.groups()
        if len(groups) < 2:
            return None
        sizes = {
            group: sum(_size(row.content) for row in self.rows if row.group == group) for group in groups
        }
        room = window() * KEPT * sum(sizes.values()) / max(tokens, 1)
        kept = sizes[groups[-1]]
        first = groups[-1]
        for group in reversed(groups[:-1]):
            kept += sizes[group]
            if kept > room:
                break
            first = group
        return first if first != groups[0] else groups[1]


def window() -> int:
    """Tokens of input that fit beside the longest answer."""
    return settings.ASSISTANT_CONTEXT_TOKENS - settings.ASSISTANT_MAX_TOKENS


def limit() -> int:
    return int(window() * FILLED)


def estimated_tokens(request: dict[str, Any]) -> int:
    return _size([request["system"], request["tools"], request["messages"]]) // BYTES_PER_TOKEN


def request(messages: list[dict[str, Any]], *, may_use_tools: bool = True) -> dict[str, Any]:
    """The whole request. System prompt and tools are the same in every one: they are the cached prefix."""
    body: dict[str, Any] = {
        "model": settings.ASSISTANT_MODEL,
        "max_tokens": settings.ASSISTANT_MAX_TOKENS,
        "system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "tools": DEFINITIONS,
        "messages": _cached(messages),
        "tool_choice": {"type": "auto" if may_use_tools else "none"},
    }
    if settings.ASSISTANT_EFFORT:
        body["output_config"] = {"effort": settings.ASSISTANT_EFFORT}
    return body


def _cached(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with a cache mark on the last block, so that the next request reads all of them from the
    cache.
    """
    *earlier, last = messages
    *blocks, block = last["content"]
    if block.get("type") in THINKING:
        return list(messages)
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    return [*earlier, {**last, "content": [*blocks, marked]}]


def _without_last_thinking(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    while message["role"] == "assistant" and content and content[-1].get("type") in THINKING:
        content = content[:-1]
    return {**message, "content": content}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_blank_text(block: Block) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def row_of(message: Message, groups: dict[int, int]) -> Row:
    assert message.turn_id is not None
    return Row(message.pk, groups.get(message.turn_id, message.turn_id), message.role, message.content)


def rows_of(messages: Iterable[Message], groups: dict[int, int]) -> list[Row]:
    return [row_of(message, groups) for message in messages]
