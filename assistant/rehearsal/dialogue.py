"""The conversation as the rules need it, read from the messages of a request."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from assistant.messages_api.errors import JsonObject
from assistant.messages_api.signatures import content_of

Json = dict[str, Any]

_NOTE = re.compile(r"^\s*<note>(.*?)</note>\s*", re.DOTALL)
_NOW = re.compile(r"It is (\w+), (\d{4}-\d\d-\d\d) (\d\d:\d\d) (\w+)")
_JUDGED = re.compile(r'The person pressed "(That\'s it, me too|Not the same)" for ticket (\d+)')


@dataclass(frozen=True, slots=True)
class Result:
    """A tool call with what came of it; `data` is the JSON object of the result."""

    name: str
    input: Json
    data: Json
    is_error: bool

    @property
    def tickets(self) -> list[Json]:
        found = self.data.get("tickets")
        return [ticket for ticket in found if isinstance(ticket, dict)] if isinstance(found, list) else []


@dataclass(slots=True)
class Dialogue:
    """What was said and done so far. `results` are those since the person spoke last."""

    said: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    problem: str = ""  # the words of the latest search
    suggested: list[Json] = field(default_factory=list)  # the tickets that were found for it
    settled: bool = True  # whether that problem has its ticket
    judged: dict[int, bool] = field(default_factory=dict)
    pressed: tuple[int, bool] | None = (
        None  # a button (ticket, same?) that was answered with instead of words
    )
    date: str = ""
    clock: str = ""

    @property
    def words(self) -> str:
        return self.said[-1] if self.said else ""

    @property
    def candidates(self) -> list[Json]:
        """Suggested tickets that the person has not ruled out, while that question is open."""
        if self.settled:
            return []
        return [ticket for ticket in self.suggested if self.judged.get(_number(ticket), True)]


def read_dialogue(messages: list[JsonObject]) -> Dialogue:
    """Follow the messages from the first to the last."""
    dialogue = Dialogue()
    calls: dict[str, JsonObject] = {}
    for message in messages:
        content = content_of(message)
        if message["role"] == "assistant":
            calls.update({str(block["id"]): block for block in content if block["type"] == "tool_use"})
            continue
        for block in content:
            if block["type"] == "tool_result":
                _note_result(dialogue, _result(block, calls))
        _note_words(dialogue, [str(block["text"]) for block in content if block["type"] == "text"])
    return dialogue


def _note_words(dialogue: Dialogue, texts: list[str]) -> None:
    spoken = []
    dialogue.pressed = None
    for text in texts:
        while note := _NOTE.match(text):
            _read_note(dialogue, note.group(1))
            text = text[note.end() :]
        if text.strip():
            spoken.append(text.strip())
    if spoken:
        dialogue.said.append("\n".join(spoken))
        dialogue.pressed = None
    if spoken or dialogue.pressed:
        dialogue.results = []


def _read_note(dialogue: Dialogue, note: str) -> None:
    if now := _NOW.match(note):
        dialogue.date, dialogue.clock = now.group(2), f"{now.group(3)} {now.group(4)}"
    if judged := _JUDGED.match(note):
        same = judged.group(1) != "Not the same"
        dialogue.pressed = (int(judged.group(2)), same)
        dialogue.judged[int(judged.group(2))] = same
        dialogue.settled = dialogue.settled or same


def _note_result(dialogue: Dialogue, result: Result) -> None:
    dialogue.results.append(result)
    if result.name == "find_similar_tickets" and not result.is_error:
        dialogue.problem, dialogue.suggested = str(result.input.get("query", "")), result.tickets
        dialogue.settled, dialogue.judged = False, {}
    elif result.name == "create_ticket" and result.is_error and result.tickets:
        # The creation was refused because of tickets that the person has not seen yet.
        dialogue.suggested, dialogue.settled, dialogue.judged = result.tickets, False, {}
    elif result.name in ("create_ticket", "add_comment") and not result.is_error:
        dialogue.settled = True


def _result(block: JsonObject, calls: dict[str, JsonObject]) -> Result:
    call = calls.get(str(block["tool_use_id"]), {})
    return Result(
        name=str(call.get("name", "")),
        input=cast(Json, call.get("input", {})),
        data=_json_object(_text(block.get("content", ""))),
        is_error=bool(block.get("is_error")),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[JsonObject]", content)
    return "\n".join(str(block["text"]) for block in blocks)


def _json_object(text: str) -> Json:
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        return {"error": text}
    return data if isinstance(data, dict) else {"value": data}


def _number(ticket: Json) -> int:
    return int(ticket.get("id", 0))
