"""What the server remembers of its own answers: signed thinking, paused turns, issued tool calls.

docs: build-with-claude/preserved-thinking. A thinking block is bound to everything that stood before it
(system, tools, messages); replayed behind a changed prefix it is refused. The signature carries digests
of that prefix and of the thinking block before it, so that it can be checked without any store.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from typing import cast

from assistant.messages_api.errors import JsonObject, invalid

THINKING_TYPES = ("thinking", "redacted_thinking")
_DIGEST_BYTES = 12
_REMEMBERED_ANSWERS = 10_000


class Ledger:
    """Signs thinking blocks and remembers the answers whose replay has rules of its own."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._paused: OrderedDict[bytes, None] = OrderedDict()
        self._answer_of_tool_use: OrderedDict[str, list[JsonObject]] = OrderedDict()

    def sign(self, thinking: str, body: JsonObject, answer: list[JsonObject]) -> str:
        """The signature for a thinking block that follows the blocks `answer` of the reply to `body`."""
        prefix = _Prefix(body)
        for message in messages_of(body):
            for block in content_of(message):
                prefix.add(message["role"], block)
        for block in answer:
            prefix.add("assistant", block)
        return self._seal(_model(body), prefix.digest(), prefix.previous, thinking)

    def remember(self, answer: list[JsonObject], *, paused: bool) -> None:
        """Note a finished answer, so that a replay of it can be recognised."""
        if paused:
            self._paused[digest(_plain(answer))] = None
        for block in answer:
            if block["type"] == "tool_use":
                self._answer_of_tool_use[str(block["id"])] = answer
        for memory in (self._paused, self._answer_of_tool_use):
            while len(memory) > _REMEMBERED_ANSWERS:
                memory.popitem(last=False)

    def is_paused(self, content: list[JsonObject]) -> bool:
        """Whether this ends with an answer that this server ended with `pause_turn`.

        A turn that pauses twice comes back as one message with both answers.
        """
        return any(digest(_plain(content[start:])) in self._paused for start in range(len(content)))

    def check_thinking(self, body: JsonObject) -> None:
        """Raise ApiError for a thinking block that was changed, forged, moved or bound to another history."""
        prefix, model = _Prefix(body), _model(body)
        for index, message in enumerate(messages_of(body)):
            for position, block in enumerate(content_of(message)):
                if block["type"] == "thinking":
                    self._check(block, model, prefix, f"messages.{index}.content.{position}")
                prefix.add(message["role"], block)
        self._check_latest(messages_of(body))

    def _check(self, block: JsonObject, model: bytes, prefix: _Prefix, path: str) -> None:
        claimed_model, claimed_prefix, claimed_previous = claimed = _open(str(block["signature"]))
        if self._seal(*claimed, str(block["thinking"])) != block["signature"]:
            raise invalid(f"{path}: Invalid `signature` in `thinking` block")
        if claimed_model != model:
            return  # docs: a block of another model is dropped without an error
        # Older thinking may be left out, but not from the middle.
        follows = prefix.previous in (claimed_previous, _NO_THINKING)
        if claimed_prefix != prefix.digest() or not follows:
            raise invalid(
                f"{path}: Invalid `signature` in `thinking` block. The block is bound to a different "
                "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                '"drop_block".'
            )

    def _check_latest(self, messages: list[JsonObject]) -> None:
        """seen: thinking of the latest assistant message must come back whole with its tools' results."""
        answers = [(index, m) for index, m in enumerate(messages) if m["role"] == "assistant"]
        if not answers or answers[-1][0] != len(messages) - 2:
            return
        index, message = answers[-1]
        uses = [block for block in content_of(message) if block["type"] == "tool_use"]
        issued = self._answer_of_tool_use.get(str(uses[0]["id"])) if uses else None
        # A paused answer that was resumed stands before it in the same message.
        sent, wanted = _thinking(content_of(message)), _thinking(issued or [])
        if sent[len(sent) - len(wanted) :] != wanted:
            raise invalid(
                f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest "
                "assistant message cannot be modified. These blocks must remain as they were in the original "
                "response."
            )

    def _seal(self, model: bytes, prefix: bytes, previous: bytes, thinking: str) -> str:
        bound = model + prefix + previous
        seal = hmac.new(self._key, bound + thinking.encode(), hashlib.sha256).digest()
        return base64.b64encode(bound + seal).decode()


def messages_of(body: JsonObject) -> list[JsonObject]:
    return cast("list[JsonObject]", body["messages"])


def content_of(message: JsonObject) -> list[JsonObject]:
    """The content blocks of a message; a plain string is one text block."""
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[JsonObject]", content)


def _canonical(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def digest(value: object) -> bytes:
    """A short stable digest of a JSON value."""
    return hashlib.sha256(_canonical(value)).digest()[:_DIGEST_BYTES]


_NO_THINKING = digest("")


class _Prefix:
    """Everything that stands before a block: a running digest of it, and the last thinking in it."""

    def __init__(self, body: JsonObject) -> None:
        system = body.get("system") or []
        if isinstance(system, str):
            system = [{"type": "text", "text": system}]
        self.previous = _NO_THINKING
        self._hash = hashlib.sha256(_canonical(_plain([system, body.get("tools") or []])))

    def add(self, role: object, block: JsonObject) -> None:
        if block["type"] in THINKING_TYPES:
            self.previous = digest(block.get("signature", ""))
        else:
            self._hash.update(_canonical([role, _plain(block)]))

    def digest(self) -> bytes:
        return self._hash.digest()[:_DIGEST_BYTES]


def _model(body: JsonObject) -> bytes:
    return digest(body["model"])


def _thinking(content: list[JsonObject]) -> list[JsonObject]:
    return [block for block in content if block["type"] in THINKING_TYPES]


def _plain(value: object) -> object:
    """`value` without cache_control, which may move from request to request."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _open(signature: str) -> tuple[bytes, bytes, bytes]:
    """The model, prefix and previous that a signature claims; empty parts if it has another form."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        raw = b""
    size = _DIGEST_BYTES
    return raw[:size], raw[size : 2 * size], raw[2 * size : 3 * size]
