"""The rules: from a dialogue to the next reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from assistant.messages_api.errors import JsonObject
from assistant.messages_api.replies import Reply, Text, ToolCall
from assistant.messages_api.signatures import messages_of
from assistant.rehearsal.dialogue import Dialogue, Json, Result, read_dialogue
from assistant.rehearsal.intents import Intent, Wish, problem_in, read_wish, wants_only_search
from assistant.rehearsal.language import is_german
from assistant.rehearsal.phrases import Voice, first_sentence, plain, shortened

TITLE_LENGTH = 80
SHOWN_CANDIDATES = 3
SHOWN_RESOLUTION = 200
SHOWN_TEXT = 1500  # characters of a description that is repeated in an answer


def respond(body: JsonObject) -> Reply:
    """The reply to a valid Messages API request."""
    dialogue = read_dialogue(messages_of(body))
    voice = Voice(is_german(reversed(dialogue.said)))
    return _Turn(dialogue, voice, _usable_tools(body)).reply()


def _usable_tools(body: JsonObject) -> dict[str, Json]:
    """Input schemas by tool name; none where the request forbids tools."""
    choice: Any = body.get("tool_choice") or {}
    tools: Any = body.get("tools") or []
    if choice.get("type") == "none":
        return {}
    return {tool["name"]: tool["input_schema"] for tool in tools}


@dataclass(slots=True)
class _Turn:
    """One decision: what to answer at this point of the dialogue."""

    dialogue: Dialogue
    voice: Voice
    tools: dict[str, Json]

    def reply(self) -> Reply:
        wish = read_wish(self.dialogue.words, asked=bool(self.dialogue.candidates))
        if self.dialogue.results:
            return self._after_tool(self.dialogue.results[-1], wish)
        if self.dialogue.pressed:
            return self._after_button(*self.dialogue.pressed)
        return self._ANSWERS[wish.intent](self, wish)

    # Answers to what the person said.

    def _greet(self, wish: Wish) -> Reply:
        return self._say("greeting")

    def _thanks(self, wish: Wish) -> Reply:
        return self._say("thanks")

    def _time(self, wish: Wish) -> Reply:
        if not self.dialogue.clock:
            return self._say("no_clock")
        return self._say("time", clock=self.dialogue.clock, date=self.dialogue.date)

    def _help(self, wish: Wish) -> Reply:
        return self._say("help")

    def _unknown(self, wish: Wish) -> Reply:
        return _text(self.voice.say("unknown") + self.voice.say("help"))

    def _cancel(self, wish: Wish) -> Reply:
        return self._say("not_created")

    def _list(self, wish: Wish) -> Reply:
        filters = dict(wish.fields)
        if filters.get("created_since") == "today":
            filters["created_since"] = self.dialogue.date
        return self._call("list_tickets", {name: value for name, value in filters.items() if value})

    def _show(self, wish: Wish) -> Reply:
        return self._call("get_ticket", {"ticket_id": wish.tickets[0]})

    def _update(self, wish: Wish) -> Reply:
        return self._call("update_ticket", {"ticket_id": wish.tickets[0], **wish.fields})

    def _search(self, wish: Wish) -> Reply:
        return self._call("find_similar_tickets", {"query": wish.text}, "looking")

    def _create_on_demand(self, wish: Wish) -> Reply:
        """ "Create a ticket": the problem must be known, and it must have been searched for."""
        if problem := problem_in(wish.text):
            return self._call("find_similar_tickets", {"query": problem}, "looking")
        if self.dialogue.settled or not self.dialogue.problem:
            return self._say("describe")
        return self._create(self.voice.say("creating_new"))

    def _same(self, wish: Wish) -> Reply:
        """Yes, it is a candidate (the first unless a number was named), or "me too" for a number."""
        candidates = self.dialogue.candidates
        number = wish.tickets[0] if wish.tickets else int(candidates[0]["id"])
        problem = self.dialogue.problem if candidates else ""
        return self._call("add_comment", {"ticket_id": number, "body": self._me_too(problem)})

    def _me_too(self, problem: str) -> str:
        """The comment, in the language of the problem rather than in that of a short "yes"."""
        if not problem:
            return self.voice.say("same_here_plain")
        return Voice(is_german([problem, *reversed(self.dialogue.said)])).say("same_here", problem=problem)

    def _different(self, wish: Wish) -> Reply:
        if self.dialogue.settled:
            return self._say("noted_different")
        return self._create(self.voice.say("creating_new"))

    _ANSWERS: ClassVar[dict[Intent, Callable[[_Turn, Wish], Reply]]] = {
        Intent.GREETING: _greet,
        Intent.THANKS: _thanks,
        Intent.TIME: _time,
        Intent.HELP: _help,
        Intent.LIST: _list,
        Intent.SHOW: _show,
        Intent.UPDATE: _update,
        Intent.CREATE: _create_on_demand,
        Intent.YES: _same,
        Intent.NO: _different,
        Intent.CANCEL: _cancel,
        Intent.PROBLEM: _search,
        Intent.UNKNOWN: _unknown,
    }

    def _after_button(self, number: int, same: bool) -> Reply:
        if same:
            return self._say("noted", id=number)
        if candidates := self.dialogue.candidates:
            return self._ask(self.voice.say("others"), candidates)
        return self._create(self.voice.say("creating_new"))

    # Answers to what a tool returned.

    def _after_tool(self, result: Result, wish: Wish) -> Reply:
        if result.is_error:
            return self._failed(result, wish)
        answer = self._REPORTS.get(result.name)
        return answer(self, result, wish) if answer else self._say("unknown")

    def _failed(self, result: Result, wish: Wish) -> Reply:
        if result.name == "create_ticket" and (candidates := self.dialogue.candidates):
            return self._ask(self.voice.say("first"), candidates)
        searched = any(earlier.name == "find_similar_tickets" for earlier in self.dialogue.results)
        if result.name == "create_ticket" and not searched:
            # The receipt of the last search is used up: look again.
            query = result.input.get("description", wish.text)
            return self._call("find_similar_tickets", {"query": query}, "looking")
        error = result.data.get("error") or result.data.get("reason") or ""
        return self._say("failed", error=plain(first_sentence(str(error))))

    def _found(self, result: Result, wish: Wish) -> Reply:
        outcome = result.data.get("outcome")
        opening = self._opening(result)
        if result.tickets:
            return self._ask(opening, result.tickets)
        if outcome == "nothing" and wants_only_search(wish.text):
            return _text(opening)
        return self._create(f"{opening} {self.voice.say('creating')}")

    def _ask(self, opening: str, tickets: list[Json]) -> Reply:
        lines = [self._candidate(ticket) for ticket in tickets[:SHOWN_CANDIDATES]]
        question = self.voice.say("is_it" if len(lines) == 1 else "which")
        return _text("\n\n".join([opening, "\n".join(lines), question]))

    def _opening(self, result: Result) -> str:
        outcome = result.data.get("outcome")
        if outcome == "found":
            likely = any(ticket.get("band") == "likely" for ticket in result.tickets)
            return self.voice.say("found" if likely else "similar")
        if outcome == "nothing":
            return " ".join(filter(None, [self.voice.say("nothing"), self._coverage(result)]))
        cause = self.voice.cause(str(result.data.get("reason") or ""))
        opening = self.voice.say("unavailable", cause=f": {cause}" if cause else "")
        return f"{opening} {self.voice.say('by_words')}" if result.tickets else opening

    def _coverage(self, result: Result) -> str:
        coverage = result.data.get("coverage")
        counts = coverage if isinstance(coverage, dict) else {}
        indexed, total = counts.get("indexed"), counts.get("total")
        if isinstance(indexed, int) and isinstance(total, int) and indexed < total:
            return self.voice.say("coverage", indexed=indexed, total=total)
        return ""

    def _created(self, result: Result, wish: Wish) -> Reply:
        ticket = result.data.get("ticket") or {}
        sentence = self.voice.say("created", id=ticket.get("id"), title=plain(ticket.get("title", "")))
        if ticket.get("duplicate_check") == "unavailable":
            sentence += " " + self.voice.say("unchecked")
        return _text(sentence)

    def _listed(self, result: Result, wish: Wish) -> Reply:
        total: Any = result.data.get("total", len(result.tickets))
        shown = len(result.tickets)
        values = {
            "total": total,
            "tickets": self.voice.say("ticket" if total == 1 else "tickets"),
            "filters": self._filters(result.input),
        }
        sentence = self.voice.say("total", **values)
        if not shown:
            return _text(f"{sentence}.")
        sentence += ":" if shown == total else self.voice.say("shown", shown=shown)
        return _text("\n".join([sentence, "", *map(self._line, result.tickets)]))

    def _filters(self, given: Json) -> str:
        named = [self.voice.word(given[name]) for name in ("status", "priority") if given.get(name)]
        return f" ({', '.join(named)})" if named else ""

    def _shown(self, result: Result, wish: Wish) -> Reply:
        ticket = result.data.get("ticket") or {}
        parts = [f"**#{ticket.get('id')} {plain(ticket.get('title', ''))}**", self._facts(ticket)]
        parts.append(plain(shortened(str(ticket.get("description") or ""), SHOWN_TEXT)))
        if ticket.get("resolution"):
            parts.append(self.voice.say("resolution", resolution=plain(ticket["resolution"])))
        parts += self._comments(ticket.get("comments") or [])
        return _text("\n\n".join(part for part in parts if part))

    def _facts(self, ticket: Json) -> str:
        words = [
            self.voice.word(ticket[name]) for name in ("status", "priority", "category") if ticket.get(name)
        ]
        people = [
            f"{self.voice.word(name)}: {plain(ticket[name])}"
            for name in ("reporter", "assignee")
            if ticket.get(name)
        ]
        return " · ".join([*words, *people])

    def _comments(self, comments: list[Json]) -> list[str]:
        lines = []
        for comment in comments:
            mark = f" ({self.voice.say('internal')})" if comment.get("internal") else ""
            text = plain(shortened(str(comment.get("body", "")), SHOWN_TEXT))
            lines.append(f"- {plain(comment.get('author', ''))}{mark}: {text}")
        return [self.voice.say("comments"), "\n".join(lines)] if lines else []

    def _updated(self, result: Result, wish: Wish) -> Reply:
        number = result.data.get("ticket_id")
        changes: list[Json] = result.data.get("changes") or []
        if not changes:
            return self._say("unchanged", id=number)
        return _text("\n".join([self.voice.say("changed", id=number), "", *map(self._change, changes)]))

    def _change(self, change: Json) -> str:
        old, new = (self._value(change.get(side)) for side in ("old", "new"))
        return self.voice.say("change", field=self.voice.word(change.get("field")), old=old, new=new)

    def _value(self, value: object) -> str:
        return plain(self.voice.word(value)) if value not in (None, "") else self.voice.say("empty")

    def _commented(self, result: Result, wish: Wish) -> Reply:
        return self._say("commented", id=result.data.get("ticket_id"))

    _REPORTS: ClassVar[dict[str, Callable[[_Turn, Result, Wish], Reply]]] = {
        "find_similar_tickets": _found,
        "create_ticket": _created,
        "list_tickets": _listed,
        "get_ticket": _shown,
        "update_ticket": _updated,
        "add_comment": _commented,
    }

    # Pieces.

    def _candidate(self, ticket: Json) -> str:
        facts = [self.voice.word(ticket.get("status", "")), self.voice.word(ticket.get("band", ""))]
        facts.append(self.voice.age(ticket.get("age_days")))
        if ticket.get("resolution"):
            resolution = shortened(plain(ticket["resolution"]), SHOWN_RESOLUTION)
            facts.append(self.voice.say("solved_by", resolution=resolution))
        return self._entry(ticket, facts)

    def _line(self, ticket: Json) -> str:
        facts = [self.voice.word(ticket.get(name, "")) for name in ("status", "priority")]
        return self._entry(ticket, [*facts, self.voice.age(ticket.get("age_days"))])

    def _entry(self, ticket: Json, facts: list[str]) -> str:
        head = f"- **#{ticket.get('id')}** {plain(ticket.get('title', ''))}"
        return " · ".join([head, *filter(None, facts)])

    def _create(self, announcement: str) -> Reply:
        """A ticket in the words of the search, not in those of the answer to it."""
        problem = self.dialogue.problem
        title = shortened(problem.splitlines()[0].strip() if problem else "", TITLE_LENGTH)
        if not title:
            return self._say("describe")
        call = self._call("create_ticket", {"title": title, "description": problem})
        if not any(isinstance(block, ToolCall) for block in call.blocks):
            return call
        return Reply((Text(announcement), *call.blocks))

    def _call(self, tool: str, wanted: Json, announcement: str = "") -> Reply:
        """The tool call with those arguments that its schema knows, or why it cannot be made."""
        if not self.tools:
            return self._say("no_tools")
        if tool not in self.tools:
            return self._say("no_tool", tool=f"`{tool}`")
        known = self.tools[tool].get("properties", {})
        arguments = {name: value for name, value in wanted.items() if name in known}
        opening = (Text(self.voice.say(announcement)),) if announcement else ()
        return Reply((*opening, ToolCall(tool, arguments)))

    def _say(self, phrase: str, **values: object) -> Reply:
        return _text(self.voice.say(phrase, **values))


def _text(text: str) -> Reply:
    return Reply((Text(text),))
