"""A turn from the message to its stored answer."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from assistant.events import CandidatesFound, TextDelta, ToolFinished, ToolStarted, TurnFinished, TurnStarted
from assistant.models import Conversation, Message, ToolCall, Turn
from tests.assistant.conftest import Ask, run
from tests.factories import TicketFactory
from tests.fakes.claude import ScriptedClaude, Thinking, ToolCall as Use


def test_answers_a_greeting(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("Hello Alice.")
    turn, events = ask("Hello")
    assert [type(event) for event in events[:1] + events[-1:]] == [TurnStarted, TurnFinished]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello Alice."
    assert (turn.status, turn.question, turn.answer, turn.stop_reason) == (
        "done",
        "Hello",
        "Hello Alice.",
        "end_turn",
    )
    assert turn.tokens_in > 0
    assert turn.first_token_ms is not None
    assert turn.total_ms is not None
    assert turn.total_ms >= turn.model_ms


def test_runs_tools_and_answers(ask: Ask, claude: ScriptedClaude, alice: User) -> None:
    ticket = TicketFactory(title="Printer is on fire", reporter=alice)
    claude.reply(Thinking("hm"), Use("list_tickets", {"status": "new"}))
    claude.reply(f"There is #{ticket.pk}.")
    turn, events = ask("What is new?")
    assert turn.status == "done"
    assert turn.steps == 2
    call = turn.tool_calls.get()
    assert not call.is_error, call.result
    assert '"total": 1' in call.result
    assert [type(event) for event in events if isinstance(event, (ToolStarted, ToolFinished))] == [
        ToolStarted,
        ToolFinished,
    ]
    assert (turn.sources_found, turn.sources_used) == (1, 1)


def test_finds_a_ticket_in_another_language(
    ask: Ask, claude: ScriptedClaude, alice: User, index: Callable[[], None]
) -> None:
    ticket = TicketFactory(title="Printout fails on second floor", reporter=alice)
    index()
    claude.reply(Use("find_similar_tickets", {"query": "Drucker im zweiten Stock druckt nicht"}))
    claude.reply("Is it that one?")
    turn, events = ask("Drucker im zweiten Stock druckt nicht")
    found = next(event for event in events if isinstance(event, CandidatesFound))
    assert [hit.ticket.pk for hit in found.outcome.hits] == [ticket.pk]
    call = turn.tool_calls.get()
    assert (call.outcome, call.hits[0]["ticket"], call.search_log_id) == (
        "found",
        ticket.pk,
        found.outcome.log_id,
    )


def test_a_second_turn_sends_the_first_unchanged(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Thinking("hm"), Use("list_tickets", {"limit": 3, "status": "open"})).reply("None.").reply(
        "Bye."
    )
    ask("What is open?")
    ask("Thanks")
    first, second, third = (exchange.body for exchange in claude.requests)
    assert second["system"] == third["system"] == first["system"]
    assert second["tools"] == third["tools"] == first["tools"]
    assert without_marks(third["messages"])[: len(second["messages"])] == without_marks(second["messages"])


def without_marks(messages: list) -> list:
    return [
        {
            **message,
            "content": [
                {key: value for key, value in block.items() if key != "cache_control"}
                for block in message["content"]
            ],
        }
        for message in messages
    ]
