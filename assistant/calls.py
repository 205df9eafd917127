"""One model call: the request within its budget, the stream, its faults, and retries while nothing was
visible.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import ngettext_lazy

from assistant import client as api
from assistant import history as sent
from assistant import running, store
from assistant.db import run_db
from assistant.events import Event, Notice, Retrying
from assistant.faults import Fault
from assistant.history import Block, History
from assistant.stream import IncomingMessage, events_of
from assistant.wording import counted

if TYPE_CHECKING:
    from assistant.record import Record

log = logging.getLogger(__name__)

# Pauses before the second and third try, unless the server names its own.
RETRY_SECONDS = (1.0, 4.0)
LONGEST_WAIT = 20.0
# So many answers are read as they come; more share that many reads a second.
FEW_ANSWERS = 40
READS_PER_SECOND = 400
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
            fault = api.fault_of(error, streaming=reading.message.started)
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
        self.message = IncomingMessage()
        self.heard = False  # since the last look: a ping is no part of the answer
        self.speaking = False

    async def read(self, request: dict[str, Any]) -> Reply:
        """The reply. Raises whatever the SDK and the transport raise, and `Fault` for a stream that reports
        an error or has no end.
        """
        message = self.message
        create = api.client().messages.with_streaming_response.create
        async with asyncio.timeout(api.STALL_SECONDS) as self.patience:
            async with create(**request, stream=True) as response:
                async for event in events_of(self._unhurried(response.iter_bytes())):
                    self._take(event)
        if not message.complete:
            raise Fault("connection_lost" if message.started else "garbled", detail="no end of the message")
        return Reply(message.content, message.stop_reason, message.unreadable)

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "error":
            raise api.fault_of_event(event)
        if event["type"] != "ping":
            self.heard = True
        if text := self.message.take(event):
            self.speaking = True
            self.said(text)

    async def _unhurried(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body, with pauses once the answer is visible where many answers are being written: so all of
        them together cost the process the same number of reads.
        """
        async for chunk in chunks:
            self.heard = False
            yield chunk
            if self.heard:
                self.patience.reschedule(asyncio.get_running_loop().time() + api.STALL_SECONDS)
            if self.speaking and (answers := running.count()) > FEW_ANSWERS:
                await asyncio.sleep(answers / READS_PER_SECOND)

    def count_tokens(self, record: Record) -> None:
        """Add what the call used, as far as it has been said. An aborted call has been paid for as well."""
        usage = self.message.usage
        record.tokens_in += usage.get("input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        record.tokens_cached += usage.get("cache_read_input_tokens", 0)
        record.tokens_out += usage.get("output_tokens", 0)
