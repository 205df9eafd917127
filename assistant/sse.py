"""A running turn as server-sent events: each event of the loop becomes a piece of HTML for the page.

Messages: `text` (escaped text of the answer, appended), `live` (replaces the text box), `flow` (steps, cards,
notices; appended), `state` (the line below), `done` (the whole turn, rendered from what is stored).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
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
    async with aclosing(loop.run_turn(turn.pk)) as happening:
        async for event in happening:
            yield await page.show(event)


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
        if isinstance(event, events.Silence):
            return b": keep-alive\n\n"
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
