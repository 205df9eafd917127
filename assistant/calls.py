"""One model call: the request within its budget, the stream, its faults, and retries while nothing was
visible.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anthropic.lib.streaming import AsyncMessageStream
from django.utils.translation import ngettext_lazy

from assistant import client as api
from assistant import history as sent
from assistant import store
from assistant.db import run_db
from assistant.events import Event, Notice, Retrying
from assistant.faults import Fault
from assistant.history import THINKING, Block, History
from assistant.wording import counted

if TYPE_CHECKING:
    from assistant.record import Record

log = logging.getLogger(__name__)

# Pauses before the second and third try, unless the server names its own.
RETRY_SECONDS = (1.0, 4.0)
LONGEST_WAIT = 20.0
VALID_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

LEFT_OUT = ngettext_lazy(
    "The conversation is long: %(count)d earlier message is left out from now on.",
    "The conversation is long: %(count)d earlier messages are left out from now on.",
    "count",
)


@dataclass(slots=True)
class Reply:
    """A message of the model that came in to its end."""

    content: list[Block]
    stop_reason: str
    unreadable: set[str] = field(default_factory=set)  # tool uses whose arguments are not JSON

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def tool_uses(self) -> list[Block]:
        return self.tool_uses_in(self.content)

    @staticmethod
    def tool_uses_in(content: list[Block]) -> list[Block]:
        return [block for block in content if block.get("type") == "tool_use"]

    def without_tool_uses(self) -> list[Block]:
        return [block for block in self.content if block.get("type") != "tool_use"]

    def is_cut(self, block: Block) -> bool:
        """Whether this tool use is where the output limit struck."""
        return self.stop_reason == "max_tokens" and block is self.content[-1]

    def with_fresh_ids(self, used: set[str]) -> list[Block]:
        """The content, where a tool use repeats an id of the conversation, or has an impossible one, with a
        new id.

        Ids must be unique in a history; an answer that comes a second time would make it invalid for ever.
        """
        taken = set(used)
        content = []
        for block in self.content:
            if block.get("type") == "tool_use":
                block = _with_fresh_id(block, taken)
                taken.add(block["id"])
            content.append(block)
        return content


def _with_fresh_id(block: Block, taken: set[str]) -> Block:
    tool_use_id = str(block["id"])
    if VALID_ID.fullmatch(tool_use_id) and tool_use_id not in taken:
        return block
    number = 1
    while (fresh := f"again_{_digest(f'{number}:{tool_use_id}')}") in taken:
        number += 1
    return {**block, "id": fresh}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class Talk:
    """The conversation with the API during one turn."""

    def __init__(
        self,
        turn_id: int,
        history: History,
        said: Callable[[str], None],
        emit: Callable[[Event], None],
        record: Record,
    ) -> None:
        self.turn_id = turn_id
        self.history = history
        self.said = said
        self.emit = emit
        self.record = record
        record.messages_left_out = history.left_out

    async def ask(self, *, may_use_tools: bool) -> Reply:
        """One reply, whole. Raises `Fault`; what was visible by then is in `record.partial`."""
        repaired: set[str] = set()
        attempt = 1
        while True:
            try:
                return await self._try(may_use_tools)
            except Fault as fault:
                if self.record.partial:
                    raise
                if fault.code not in repaired and await self._repair(fault):
                    repaired.add(fault.code)
                    continue
                await self._wait_before_retry(fault, attempt)
                attempt += 1

    async def _try(self, may_use_tools: bool) -> Reply:
        request = await self._request_within_budget(may_use_tools)
        reading = _Reading(self.said)
        try:
            return await reading.read(request)
        except Exception as error:
            fault = api.fault_of(error, streaming=reading.started)
            log.info("turn %s: model call failed: %s (%s)", self.turn_id, fault.code, fault.detail)
            raise fault from error
        finally:
            reading.count_tokens(self.record)

    async def _wait_before_retry(self, fault: Fault, attempt: int) -> None:
        """Announce and wait, or raise the fault for good."""
        if not fault.retryable or attempt > len(RETRY_SECONDS):
            raise fault
        seconds = RETRY_SECONDS[attempt - 1] if fault.retry_after is None else fault.retry_after
        if seconds > LONGEST_WAIT:
            raise Fault("rate_limited_until", detail=fault.detail, seconds=round(seconds)) from fault
        self.emit(Retrying(fault.retrying_sentence, seconds, attempt))
        await asyncio.sleep(seconds)

    async def _repair(self, fault: Fault) -> bool:
        """Whether the request can be made acceptable, and was."""
        if fault.code == api.SIGNATURE:
            self.history = await run_db(store.drop_thinking, self.turn_id)
            return True
        if fault.code in (api.PROMPT_TOO_LONG, "too_large"):
            return await self._shorten(2 * sent.limit())
        return False

    # -- the budget ----------------------------------------------------------------------------------------

    async def _request_within_budget(self, may_use_tools: bool) -> dict[str, Any]:
        """The request, with earlier turns left out if it would not fit. Counted exactly only when it is
        close.
        """
        request = sent.request(self.history.messages(), may_use_tools=may_use_tools)
        estimate = sent.estimated_tokens(request)
        if estimate <= sent.limit():
            return request
        tokens = await self._counted(request, estimate)
        if tokens <= sent.limit() or not await self._shorten(tokens):
            return request
        return sent.request(self.history.messages(), may_use_tools=may_use_tools)

    async def _counted(self, request: dict[str, Any], estimate: int) -> int:
        """The API's own count; where it does not count, the estimate stands."""
        body = {key: value for key, value in request.items() if key != "max_tokens"}
        try:
            return (await api.client().messages.count_tokens(**body)).input_tokens
        except Exception as error:
            log.info("turn %s: tokens not counted (%s)", self.turn_id, type(error).__name__)
            return estimate

    async def _shorten(self, tokens: int) -> bool:
        first = self.history.first_kept_group(tokens)
        if first is None:
            return False
        self.history = await run_db(store.shorten, self.turn_id, first)
        self.record.messages_left_out = self.history.left_out
        self.emit(Notice(counted(LEFT_OUT, self.history.left_out)))
        return True


class _Reading:
    """One HTTP stream, read to its end."""

    def __init__(self, said: Callable[[str], None]) -> None:
        self.said = said
        self.started = False
        self.complete = False
        self.json: dict[int, str] = {}
        self.stream: AsyncMessageStream[Any] | None = None

    async def read(self, request: dict[str, Any]) -> Reply:
        """The reply. Raises whatever the SDK and the transport raise, and `Fault` for a stream without its
        end.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(api.STALL_SECONDS) as patience:
            async with api.client().messages.stream(**request) as self.stream:
                async for event in self.stream:
                    patience.reschedule(loop.time() + api.STALL_SECONDS)
                    self._take(event)
        if not self.complete:
            raise Fault("connection_lost" if self.started else "garbled", detail="no end of the message")
        return self._reply()

    def _take(self, event: Any) -> None:
        if event.type == "message_start":
            self.started = True
        elif event.type == "message_stop":
            self.complete = True
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            self.said(event.delta.text)
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            self.json[event.index] = self.json.get(event.index, "") + event.delta.partial_json

    def _snapshot(self) -> Any:
        assert self.stream is not None
        return self.stream.current_message_snapshot

    def _reply(self) -> Reply:
        message = self._snapshot()
        blocks = [block.to_dict() for block in message.content]
        unreadable = {
            str(block["id"])
            for index, block in enumerate(blocks)
            if block.get("type") == "tool_use" and not _is_object(self.json.get(index, ""))
        }
        return Reply(
            [block for block in blocks if _is_whole(block)], str(message.stop_reason or ""), unreadable
        )

    def count_tokens(self, record: Record) -> None:
        """Add what the call used, as far as it has been said. An aborted call has been paid for as well."""
        if self.stream is None or not self.started:
            return
        usage = self._snapshot().usage
        record.tokens_in += (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        record.tokens_cached += usage.cache_read_input_tokens or 0
        record.tokens_out += usage.output_tokens or 0


def _is_whole(block: Block) -> bool:
    """Thinking that was cut off has no signature, and without one the API does not take it back."""
    return block.get("type") not in THINKING or bool(block.get("signature") or block.get("data"))


def _is_object(text: str) -> bool:
    """Whether the arguments are a complete JSON object; the SDK itself takes a broken end for an end."""
    if not text:
        return True  # no arguments at all are sent as nothing
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
