"""One turn: the model is asked, its tools run, until it has answered or cannot. Own code over the SDK's
stream.

`run_turn` is all the outside needs. It yields events and knows no request; closing it stops the turn. Inside,
the turn runs as a task of its own that puts its events into a queue, so that "stop", a lost browser and a
dead database row all end it in the same way: by cancelling that task, which closes the connection to the API.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from django.conf import settings
from structlog.contextvars import bind_contextvars

from assistant import notes, running, store
from assistant.calls import Reply, Talk
from assistant.client import answering_model
from assistant.db import run_db, run_search
from assistant.endings import Ending, ending_of
from assistant.events import (
    CandidatesFound,
    Event,
    Silence,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from assistant.faults import Fault
from assistant.history import Block
from assistant.models import ToolCall, Turn
from assistant.record import Record, Stopwatch
from assistant.tools.errors import ToolError
from assistant.tools.execution import Call
from assistant.tools.results import failure
from assistant.tools.scope import Scope
from assistant.wording import label, summary

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
FOLLOW_SECONDS = 1.0
SILENCE_SECONDS = 15.0
JOIN_SECONDS = 0.1
Emit = Callable[[Event], None]


async def run_turn(turn_id: int) -> AsyncGenerator[Event, None]:
    """Answer a queued turn and tell how it goes; the last event is always `TurnFinished`.

    Closing or cancelling the generator stops the turn. Of several callers one answers; the others follow
    until the turn has ended. Raises `Turn.DoesNotExist` for an unknown turn, and nothing else.
    """
    claim = await run_db(store.claim, turn_id, answering_model())
    if claim is None:
        async for event in _follow(turn_id):
            yield event
        return
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(_answer(claim, events), name=f"turn-{turn_id}")
    try:
        while (happened := await _next(events)) is not None:
            yield happened
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _next(events: asyncio.Queue[Event | None]) -> Event | None:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await events.get()
    except TimeoutError:
        return Silence()


async def _follow(turn_id: int) -> AsyncGenerator[Event, None]:
    """Somebody else answers this turn, or it has ended: wait for its end."""
    yield TurnStarted(turn_id)
    while True:
        turn, following = await run_db(store.look, turn_id)
        if turn.status != Turn.Status.RUNNING:
            yield _finished(turn, following)
            return
        await asyncio.sleep(FOLLOW_SECONDS)
        yield Silence()


async def _answer(claim: store.Claim, events: asyncio.Queue[Event | None]) -> None:
    """The task of a turn: whatever happens in it, the turn is closed and the listener told."""
    task = asyncio.current_task()
    assert task is not None
    # In the context of this task alone: every line about the turn names it, from the pool's threads too.
    bind_contextvars(turn_id=claim.turn.pk, conversation_id=claim.turn.conversation_id)
    answering = _Answering(claim, events.put_nowait)
    heartbeat = asyncio.create_task(answering.keep_alive(task))
    try:
        with running.registered(claim.turn.pk, task):
            await answering.run()
    finally:
        heartbeat.cancel()
        try:
            # A task of its own, so that a second cancellation cannot leave the turn running for ever.
            await asyncio.shield(asyncio.ensure_future(answering.close()))
        finally:
            events.put_nowait(None)


class _Pieces:
    """Joins what is said within a short while: a stream costs ten events a second, not one a token.

    The first text goes out at once, and every other event sends what was said before it first.
    """

    def __init__(self, send: Emit) -> None:
        self._send = send
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def say(self, text: str) -> None:
        self._text += text
        if self._timer is None:
            self.flush()
            self._timer = asyncio.get_running_loop().call_later(JOIN_SECONDS, self._due)

    def emit(self, event: Event) -> None:
        self.flush()
        self._send(event)

    def _due(self) -> None:
        self._timer = None
        if self._text:
            self.say("")

    def flush(self) -> None:
        if self._text:
            text, self._text = self._text, ""
            self._send(TextDelta(text))


class _Answering:
    """One turn while it is being answered."""

    def __init__(self, claim: store.Claim, emit: Emit) -> None:
        self.turn = claim.turn
        self.user = claim.user
        self.used_ids = claim.used_ids
        self.pieces = _Pieces(emit)
        self.emit = self.pieces.emit
        self.record = Record()
        self.watch = Stopwatch()
        self.talk = Talk(claim.turn.pk, claim.history, self._said, self.emit, self.record)
        self.nudged = False

    async def run(self) -> None:
        """Steps until one of them is the end. Every way out of here leaves an ending in the record."""
        self.emit(TurnStarted(self.turn.pk))
        try:
            self.record.end(await self._steps())
        except asyncio.CancelledError:
            # Whoever presses Stop has closed the turn in the database before, and that is what stays.
            self.record.end(Ending(Turn.Status.INTERRUPTED, "disconnected"))
            raise
        except store.TurnClosed:
            self.record.end(Ending(Turn.Status.INTERRUPTED, "stopped"))
        except Fault as fault:
            log.warning("turn %s: %s (%s)", self.turn.pk, fault.code, fault.detail)
            self.record.end(self._ending_of_fault(fault))
        except Exception:
            log.exception("turn %s failed", self.turn.pk)
            self.record.end(Ending(Turn.Status.FAILED, "internal"))

    async def close(self) -> None:
        """Store the record and say how it ended."""
        self.record.total_ms = self.watch.total_ms
        try:
            turn, following = await run_db(store.finish, self.turn.pk, self.record)
        except Exception:  # the database is gone: the turn is closed as abandoned when it is back
            log.exception("turn %s could not be closed", self.turn.pk)
            turn, following = self.turn, None
            turn.status, turn.error = Turn.Status.FAILED, "internal"
        self.emit(_finished(turn, following))

    async def keep_alive(self, task: asyncio.Task[None]) -> None:
        """Show that this process is alive; stop when the turn was ended from another one."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                alive = await run_db(store.keep_alive, self.turn.pk, self.record.partial)
            except Exception:
                log.exception("turn %s: no heartbeat", self.turn.pk)
                continue
            if not alive:
                task.cancel()
                return

    def _said(self, text: str) -> None:
        if self.record.first_token_ms is None:
            self.record.first_token_ms = self.watch.total_ms
        self.record.partial += text
        self.pieces.say(text)

    def _ending_of_fault(self, fault: Fault) -> Ending:
        """Interrupted if the person has read a part of the answer, failed otherwise."""
        status = Turn.Status.INTERRUPTED if self.record.partial else Turn.Status.FAILED
        return Ending(status, fault.code, dict(fault.params))

    async def _steps(self) -> Ending:
        for step in range(1, settings.ASSISTANT_MAX_STEPS + 1):
            self.record.steps = step
            last = step == settings.ASSISTANT_MAX_STEPS
            with self.watch.model(self.record):
                reply = await self.talk.ask(may_use_tools=not last)
            self.pieces.flush()  # the last word need not wait until all is stored
            ending = await self._after(reply, last)
            if ending is not None:
                return ending
        return Ending(Turn.Status.INTERRUPTED, "step_limit", {"steps": settings.ASSISTANT_MAX_STEPS})

    async def _after(self, reply: Reply, last: bool) -> Ending | None:
        """What follows from one reply: an ending, or None to ask again."""
        self.record.stop_reason = reply.stop_reason
        if reply.stop_reason == "refusal":
            return ending_of(reply)
        if reply.stop_reason == "model_context_window_exceeded":
            return await self._after_full_window(reply)
        if reply.tool_uses:
            await self._use_tools(reply, last)
            return None
        if not reply.text.strip() and reply.stop_reason != "pause_turn":
            return await self._after_empty(reply, last)
        if reply.stop_reason == "pause_turn":
            await self._keep(reply.content, [])
            return None
        self.record.last_message = reply.content
        return ending_of(reply)

    async def _after_full_window(self, reply: Reply) -> Ending:
        """The answer does not fit behind what was sent: keep its text, and send less from now on."""
        if reply.text.strip():
            await self._keep(reply.without_tool_uses(), [])
        await run_db(store.shorten, self.turn.pk, self.turn.pk + 1)
        return ending_of(reply)

    async def _after_empty(self, reply: Reply, last: bool) -> Ending | None:
        """Models sometimes say nothing after a tool result. Ask once; then it is a failure."""
        if reply.stop_reason == "max_tokens":
            return ending_of(reply)
        if self.nudged or last:
            return Ending(Turn.Status.FAILED, "empty_answer")
        self.nudged = True
        self.talk.history.rows.append(await run_db(store.add_nudge, self.turn.pk, notes.EMPTY_ANSWER))
        return None

    # -- tools ---------------------------------------------------------------------------------------------

    async def _use_tools(self, reply: Reply, last: bool) -> None:
        """Run what can be run, and give every tool use of the message its result."""
        content = reply.with_fresh_ids(self.used_ids)
        calls = [
            Call(block["id"], str(block["name"]), block["input"]) for block in reply.tool_uses_in(content)
        ]
        _refuse_what_must_not_run(calls, reply, last)
        for call in calls:
            call.check()
            self.emit(ToolStarted(call.tool_use_id, call.name, call.arguments or {}, label(call.name)))
        with self.watch.tools(self.record):
            scope = Scope(self.user, self.turn.conversation, self.turn)
            await asyncio.gather(*(run_search(call.search, scope) for call in calls if call.needs_search))
            stored = await self._keep(content, calls)
        for call, row in zip(calls, stored, strict=True):
            self._tell(call, row)

    async def _keep(self, content: list[Block], calls: list[Call]) -> list[ToolCall]:
        """Store a finished message with its tools' work. From here on its text is no longer "partial"."""
        rows, stored = await run_db(store.commit_step, self.turn.pk, content, calls)
        self.talk.history.rows.extend(rows)
        self.used_ids.update(call.tool_use_id for call in calls)
        self.record.keep_text(content)
        return stored

    def _tell(self, call: Call, row: ToolCall) -> None:
        result = call.result
        if result is not None and result.search is not None:
            self.emit(CandidatesFound(call.tool_use_id, result.search))
        self.emit(
            ToolFinished(call.tool_use_id, call.name, row.is_error, summary(row), row.duration_ms, row.pk)
        )


@dataclass(frozen=True, slots=True)
class _Refusals:
    cut = ToolError(
        "This call was not run: it was cut off at the output limit. Repeat it with shorter texts, and alone.",
        "cut",
    )
    steps = ToolError(
        "This call was not run: the step limit is reached. Answer the person with what you know.", "steps"
    )
    repeated = ToolError(
        "This call was not run: it repeats a tool use that has run before in this conversation.", "repeated"
    )
    garbled = ToolError("This call was not run: its arguments were not valid JSON. Repeat it.", "garbled")


def _refuse_what_must_not_run(calls: list[Call], reply: Reply, last: bool) -> None:
    for call, block in zip(calls, reply.tool_uses, strict=True):
        if last:
            call.result = failure(_Refusals.steps)
        elif reply.is_cut(block):
            call.result = failure(_Refusals.cut)
        elif call.tool_use_id != block["id"]:
            call.result = failure(_Refusals.repeated)
        elif block["id"] in reply.unreadable:
            call.result = failure(_Refusals.garbled)


def _finished(turn: Turn, following: Turn | None) -> TurnFinished:
    return TurnFinished(
        turn.pk, turn.status, turn.stop_reason, turn.error_sentence, following.pk if following else None
    )
