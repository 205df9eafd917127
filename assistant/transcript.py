"""A conversation as the page shows it: what was asked, said, done and found, in the order it happened.

The number of queries does not depend on the length of the conversation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from assistant import grounding
from assistant.faults import NOT_TO_BE_RETRIED
from assistant.models import Conversation, Message, ToolCall, Turn
from assistant.rendering import render_markdown
from assistant.wording import label, summary
from tickets.language import detect_language
from tickets.models import Ticket

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django_stubs_ext import StrOrPromise

    from retrieval.results import SearchOutcome

PASSAGES_IN = 2_000  # characters looked at to tell the language of a ticket


@dataclass(slots=True)
class Card:
    """A candidate: a ticket that a search has suggested."""

    ticket: Ticket
    band: str
    passage: str
    matched: tuple[str, ...]
    similarity: float | None
    judgement: str
    language: str


@dataclass(slots=True)
class ChangeView:
    field: str
    label: StrOrPromise
    old: StrOrPromise
    new: StrOrPromise


@dataclass(slots=True)
class Item:
    """A piece of text (`html`) or a step (`call`)."""

    kind: str
    html: SafeString | str = ""
    call: ToolCall | None = None
    label: StrOrPromise = ""
    summary: StrOrPromise = ""
    changes: list[ChangeView] = field(default_factory=list)
    candidates: list[Card] = field(default_factory=list)


@dataclass(slots=True)
class TurnView:
    turn: Turn
    questions: list[str]
    items: list[Item]
    partial_html: SafeString | str
    can_retry: bool
    can_continue: bool
    undo: ToolCall | None
    summary: StrOrPromise


def load_transcript(conversation: Conversation, user: User) -> list[TurnView]:
    """All turns of the conversation, oldest first."""
    turns = list(conversation.turns.all())
    return _Reader(conversation, user, turns).views()


def load_turn(turn: Turn, user: User) -> TurnView:
    """One turn, as it is stored now."""
    return _Reader(turn.conversation, user, [turn]).views()[0]


def cards(outcome: SearchOutcome, conversation: Conversation) -> list[Card]:
    """The candidates of a search that has just ended; its tickets were already searched as the person."""
    judged = {row.ticket_id: row.judgement for row in conversation.known_tickets.exclude(judgement="")}
    return [
        Card(
            hit.ticket,
            str(hit.band),
            hit.passage,
            hit.matched,
            hit.similarity,
            judged.get(hit.ticket.pk, ""),
            _language(hit.ticket),
        )
        for hit in outcome.hits
    ]


class _Reader:
    """Reads what belongs to some turns of one conversation, each kind of row once."""

    def __init__(self, conversation: Conversation, user: User, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.messages = _by_turn(Message.objects.filter(turn__in=turns).order_by("id"))
        # Where nothing was said yet no tool has run, and there is no link to judge.
        self.calls, known = _by_turn([]), []
        if any(row.role == Message.Role.ASSISTANT for rows in self.messages.values() for row in rows):
            self.calls = _by_turn(ToolCall.objects.filter(turn__in=turns).order_by("id"))
            known = list(conversation.known_tickets.all())
        self.links, self.known = grounding.allowed_by(known)
        self.judged = {row.ticket_id: row.judgement for row in known}
        self.tickets = self._tickets(user)
        self.newest = self._newest(conversation)

    def _newest(self, conversation: Conversation) -> int:
        """The last turn of the conversation; only that one can be tried again. 0 if none asks for it."""
        if not any(turn.is_incomplete for turn in self.turns):
            return 0
        return conversation.turns.order_by("-id").values_list("id", flat=True)[0]

    def _tickets(self, user: User) -> dict[int, Ticket]:
        """The candidates the person may see, now."""
        ids = {hit["ticket"] for calls in self.calls.values() for call in calls for hit in call.hits}
        return Ticket.objects.visible_to(user).in_bulk(ids) if ids else {}

    def views(self) -> list[TurnView]:
        return [self._view(turn) for turn in self.turns]

    def _view(self, turn: Turn) -> TurnView:
        messages, calls = self.messages[turn.pk], self.calls[turn.pk]
        changing = [call for call in calls if call.changes]
        newest = turn.pk == self.newest
        return TurnView(
            turn=turn,
            questions=[message.text for message in messages if message.from_person],
            items=list(self._items(messages, calls)),
            partial_html=self._html(turn.partial) if turn.partial and not turn.is_active else "",
            can_retry=newest and turn.is_incomplete and turn.error not in NOT_TO_BE_RETRIED,
            can_continue=newest and turn.can_continue,
            undo=changing[-1] if changing and changing[-1].can_undo else None,
            summary=_sources(turn),
        )

    def _items(self, messages: Iterable[Message], calls: Iterable[ToolCall]) -> Iterable[Item]:
        by_id = {call.tool_use_id: call for call in calls}
        for message in messages:
            if message.role != Message.Role.ASSISTANT:
                continue
            for block in message.content:
                if block.get("type") == "text" and block["text"].strip():
                    yield Item("text", html=self._html(block["text"]))
                elif block.get("type") == "tool_use" and block["id"] in by_id:
                    yield self._step(by_id[block["id"]])

    def _html(self, text: str) -> SafeString:
        return render_markdown(text, self.links, self.known)[0]

    def _step(self, call: ToolCall) -> Item:
        return Item(
            "tool",
            call=call,
            label=label(call.name),
            summary=summary(call),
            changes=[_change(change) for change in call.changes],
            candidates=[self._card(hit) for hit in call.hits if hit["ticket"] in self.tickets],
        )

    def _card(self, hit: dict[str, Any]) -> Card:
        ticket = self.tickets[hit["ticket"]]
        judgement = self.judged.get(ticket.pk, "")
        return Card(
            ticket,
            hit["band"],
            hit["passage"],
            tuple(hit["matched"]),
            hit["similarity"],
            judgement,
            _language(ticket),
        )


def _by_turn(rows: Iterable[Any]) -> defaultdict[int, list[Any]]:
    grouped: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        grouped[row.turn_id].append(row)
    return grouped


def _change(change: dict[str, Any]) -> ChangeView:
    name = change["field"]
    changed: Any = Ticket._meta.get_field(name)
    choices = dict(changed.choices or ())
    return ChangeView(
        field=name,
        label=changed.verbose_name,
        old=choices.get(change["old"], change["old"]),
        new=choices.get(change["new"], change["new"]),
    )


def _sources(turn: Turn) -> StrOrPromise:
    """The line under an answer; empty if no ticket was looked at."""
    if not turn.sources_found:
        return ""
    return format_lazy(_("found {found}, used {used}"), found=turn.sources_found, used=turn.sources_used)


def _language(ticket: Ticket) -> str:
    return _language_of(f"{ticket.title}\n{ticket.description[:PASSAGES_IN]}")


@lru_cache(maxsize=4096)
def _language_of(text: str) -> str:
    return detect_language(text)
