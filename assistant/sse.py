"""A running turn as server-sent events: each event of the loop becomes a piece of HTML for the page.

Messages: `text` (escaped text of the answer, appended), `live` (replaces the text box), `flow` (steps, cards,
notices; appended), `state` (the line below), `done` (the whole turn, rendered from what is stored).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext as _

from assistant import events, loop
from assistant.db import run_db
from assistant.models import Turn
from assistant.transcript import cards, load_turn

KEEP_ALIVE_SECONDS = 15.0
# So many events may wait for a slow reader before the model's stream is read more slowly too.
QUEUE_LENGTH = 256


def message(name: str, html: str) -> bytes:
    """One server-sent event. The format knows lines only, so every kind of line end is one."""
    lines = html.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return (f"event: {name}\n" + "".join(f"data: {line}\n" for line in lines) + "\n").encode(
        "utf-8", "replace"
    )


async def stream(request: HttpRequest, turn: Turn) -> AsyncIterator[bytes]:
    """The turn as it happens, ending with `done`. Closing the iterator stops the turn."""
    page = LivePage(request, turn)
    yield b": connected\n\n"
    async for happened in _with_pauses(turn.pk):
        if not happened:
            yield b": keep-alive\n\n"
        for event in _joined(happened):
            yield await page.show(event)


async def _with_pauses(turn_id: int) -> AsyncIterator[list[events.Event]]:
    """Batches of what has happened; an empty one when nothing has for a while.

    The loop is read by a task of its own: a pause must not cancel it, and what comes in while the browser is
    slow is joined into fewer messages.
    """
    queue: asyncio.Queue[events.Event | None] = asyncio.Queue(QUEUE_LENGTH)
    task = asyncio.create_task(_fill(queue, turn_id))
    try:
        while True:
            batch = await _next_batch(queue)
            yield [event for event in batch if event is not None]
            if None in batch:
                await task
                return
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _fill(queue: asyncio.Queue[events.Event | None], turn_id: int) -> None:
    try:
        async with aclosing(loop.run_turn(turn_id)) as happening:
            async for event in happening:
                await queue.put(event)
    except Exception:
        await queue.put(None)
        raise
    await queue.put(None)


async def _next_batch(queue: asyncio.Queue[events.Event | None]) -> list[events.Event | None]:
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            batch = [await queue.get()]
    except TimeoutError:
        return []
    while not queue.empty():
        batch.append(queue.get_nowait())
    return batch


def _joined(batch: list[events.Event]) -> Iterator[events.Event]:
    """Neighbouring pieces of text as one, so that a fast model does not cost a message a word."""
    text = ""
    for event in batch:
        if isinstance(event, events.TextDelta):
            text += event.text
            continue
        if text:
            yield events.TextDelta(text)
            text = ""
        yield event
    if text:
        yield events.TextDelta(text)


class LivePage:
    """Turns events into messages for one open page, in the person's language."""

    def __init__(self, request: HttpRequest, turn: Turn) -> None:
        self.request = request
        self.turn = turn
        self.language = translation.get_language()
        self.text = ""  # shown in the live box, not yet settled in the flow
        self.steps: dict[str, dict[str, Any]] = {}

    async def show(self, event: events.Event) -> bytes:
        if isinstance(event, events.TextDelta):
            self.text += event.text
            return message("text", escape(event.text))
        if isinstance(event, events.TurnFinished | events.CandidatesFound):
            return await run_db(self._render, event)  # these two read the database
        return self._render(event)

    def _render(self, event: events.Event) -> bytes:
        with translation.override(self.language):
            match event:
                case events.TurnStarted():
                    return message("state", f'<span class="thinking">{escape(_("Thinking"))}</span>')
                case events.ToolStarted():
                    return self._tool_started(event)
                case events.ToolFinished():
                    return self._tool_finished(event)
                case events.CandidatesFound():
                    return self._candidates(event)
                case events.Retrying():
                    seconds = _("next try in %(seconds)s s") % {"seconds": round(event.seconds)}
                    return message("state", f"{escape(event.reason)} ({escape(seconds)})")
                case events.Notice():
                    return message("flow", f'<p class="notice">{escape(event.text)}</p>')
                case events.TurnFinished():
                    return self._finished()
        return b""

    def _settle(self) -> bytes:
        """What was said before a tool step stays above it."""
        if not self.text.strip():
            return b""
        said, self.text = escape(self.text.strip()), ""
        return message("flow", f'<p class="live-text" dir="auto">{said}</p>') + message(
            "live", self._fragment("live")
        )

    def _tool_started(self, event: events.ToolStarted) -> bytes:
        step = {
            "id": f"step-{self.turn.pk}-{len(self.steps)}",
            "label": event.label,
            "input": event.input,
            "state": "running",
        }
        self.steps[event.tool_use_id] = step
        return self._settle() + message("flow", self._fragment("step", step=step)) + message("state", "")

    def _tool_finished(self, event: events.ToolFinished) -> bytes:
        step = self.steps.get(event.tool_use_id)
        if step is None:
            return b""
        step |= {
            "state": "error" if event.is_error else "done",
            "summary": event.summary,
            "duration_ms": event.duration_ms,
            "replaces": True,
        }
        thinking = f'<span class="thinking">{escape(_("Thinking"))}</span>'
        return message("flow", self._fragment("step", step=step)) + message("state", thinking)

    def _candidates(self, event: events.CandidatesFound) -> bytes:
        found = cards(event.outcome, self.turn.conversation)
        return message("flow", self._fragment("candidates", cards=found)) if found else b""

    def _finished(self) -> bytes:
        turn = Turn.objects.select_related("conversation").get(pk=self.turn.pk)
        view = load_turn(turn, cast(User, self.request.user))
        return message("done", self._fragment("turn", view=view))

    def _fragment(self, name: str, **context: Any) -> str:
        context |= {"conversation": self.turn.conversation, "turn": self.turn, "live": True}
        return render_to_string(f"assistant/_{name}.html", context, self.request).strip()
