"""Search before you create, under a model that tries everything else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from assistant.events import CandidatesFound
from assistant.judging import record_verdict
from assistant.models import Conversation, ConversationTicket
from retrieval.models import SearchProfile, Verdict
from tests.assistant.conftest import Ask
from tests.factories import TicketFactory
from tests.fakes.claude import ScriptedClaude
from tests.fakes.claude import ToolCall as Use
from tickets.models import Ticket

PROBLEM = "The printer on the second floor does not print"
CREATE = Use("create_ticket", {"title": "Printer does not print", "description": PROBLEM})
SEARCH = Use("find_similar_tickets", {"query": PROBLEM})


@pytest.fixture
def printer(alice: User, index: Callable[[], None]) -> Ticket:
    """A ticket about the problem, in an index whose bounds make it a likely duplicate and the others none."""
    ticket = TicketFactory(title="Drucker im zweiten Stock druckt nicht", reporter=alice)
    index()
    SearchProfile.objects.update_or_create(
        model="use-multilingual-3:512", defaults={"floor": 0.2, "likely": 0.4, "meaning_weight": 1.0}
    )
    return ticket


def results(claude: ScriptedClaude) -> list[dict[str, Any]]:
    """The tool results of the last request."""
    return [json.loads(block["content"]) for block in claude.requests[-1].tool_results()]


def created() -> list[Ticket]:
    return list(Ticket.objects.filter(source="chat", title=CREATE.input["title"]))


def test_creates_without_searching(ask: Ask, claude: ScriptedClaude, printer: Ticket) -> None:
    claude.reply(CREATE).reply("I must search first.")
    turn, _events = ask(PROBLEM)
    assert created() == []
    assert turn.tool_calls.get().error == "no_search"
    assert results(claude)[0]["refused"]
    assert "find_similar_tickets" in results(claude)[0]["error"]


def test_creates_after_a_search_without_likely_duplicates(
    ask: Ask, claude: ScriptedClaude, alice: User, index: Callable[[], None]
) -> None:
    TicketFactory(title="Lohnabrechnung fehlt", reporter=alice)
    index()
    claude.reply(SEARCH).reply(CREATE).reply("Done.")
    turn, _events = ask(PROBLEM)
    (ticket,) = created()
    assert (ticket.duplicate_check, ticket.reporter, ticket.description) == ("searched", alice, PROBLEM)
    call = turn.tool_calls.get(creates=True)
    assert call.ticket == ticket


def test_creates_in_the_turn_in_which_duplicates_were_found(
    ask: Ask, claude: ScriptedClaude, printer: Ticket
) -> None:
    claude.reply(SEARCH).reply(CREATE).reply("Is it that one?")
    turn, _events = ask(PROBLEM)
    assert created() == []
    assert turn.tool_calls.latest("pk").error == "unanswered"
    assert f"#{printer.pk}" in results(claude)[0]["error"]


def test_creates_in_the_message_with_the_search(ask: Ask, claude: ScriptedClaude, printer: Ticket) -> None:
    claude.reply(SEARCH, CREATE).reply("Is it that one?")
    turn, _events = ask(PROBLEM)
    assert created() == []
    assert [call.error for call in turn.tool_calls.all()] == ["", "unanswered"]


def test_creates_after_the_person_has_written_again(
    ask: Ask, claude: ScriptedClaude, printer: Ticket
) -> None:
    claude.reply(SEARCH).reply("Is it that one?").reply(CREATE).reply("Created.")
    ask(PROBLEM)
    ask("No, another printer.")
    assert len(created()) == 1


def test_a_message_that_waited_is_no_answer(
    ask: Ask, claude: ScriptedClaude, printer: Ticket, conversation: Conversation
) -> None:
    claude.reply(SEARCH).reply("Is it that one?").reply(CREATE).reply("Well?")
    ask(PROBLEM)
    call = conversation.tool_calls.get()
    conversation.tool_calls.update(created_at=call.created_at.replace(year=call.created_at.year + 1))
    turn, _events = ask("Hurry up.")
    assert created() == []
    assert turn.tool_calls.get().error == "unanswered"


def test_not_the_same_is_an_answer(
    ask: Ask, claude: ScriptedClaude, printer: Ticket, conversation: Conversation, alice: User
) -> None:
    claude.reply(SEARCH).reply("Is it that one?").reply(CREATE).reply("Created.")
    ask(PROBLEM)
    record_verdict(conversation=conversation, user=alice, candidate=printer, judgement="different")
    ask("?")
    assert len(created()) == 1
    verdict = Verdict.objects.get()
    assert (verdict.candidate, verdict.judgement, verdict.by) == (printer, "different", alice)
    assert verdict.search is not None


def test_what_was_judged_different_is_not_suggested_again(
    ask: Ask, claude: ScriptedClaude, printer: Ticket, conversation: Conversation, alice: User
) -> None:
    claude.reply(SEARCH).reply("Is it that one?").reply(SEARCH).reply("Nothing else.")
    ask(PROBLEM)
    record_verdict(conversation=conversation, user=alice, candidate=printer, judgement="different")
    turn, _events = ask("Look again")
    assert turn.tool_calls.get().hits == []


def test_thats_it_adds_one_comment_and_no_ticket(
    ask: Ask, claude: ScriptedClaude, printer: Ticket, conversation: Conversation, alice: User
) -> None:
    claude.reply(SEARCH).reply("Is it that one?")
    ask(PROBLEM)
    first = record_verdict(conversation=conversation, user=alice, candidate=printer, judgement="same")
    again = record_verdict(conversation=conversation, user=alice, candidate=printer, judgement="same")
    assert first.comment is not None
    assert (again.comment, again.already) == (None, True)
    assert [comment.body for comment in printer.comments.all()] == [f"I have this problem too.\n\n{PROBLEM}"]


def test_creating_after_thats_it_needs_another_word(
    ask: Ask, claude: ScriptedClaude, printer: Ticket, conversation: Conversation, alice: User
) -> None:
    claude.reply(SEARCH).reply("Is it that one?").reply("Fine.").reply(CREATE).reply("Created.")
    ask(PROBLEM)
    ask("Let me see")
    record_verdict(conversation=conversation, user=alice, candidate=printer, judgement="same")
    known = ConversationTicket.objects.get(conversation=conversation, ticket=printer)
    assert known.judgement == "same"
    ask("Sorry, it is another one after all")
    assert len(created()) == 1


def test_searches_for_something_else_and_then_creates(
    ask: Ask, claude: ScriptedClaude, printer: Ticket
) -> None:
    claude.reply(Use("find_similar_tickets", {"query": "cafeteria menu"})).reply(CREATE).reply(
        "Is it that one?"
    )
    turn, events = ask(PROBLEM)
    assert created() == []
    refused = turn.tool_calls.latest("pk")
    assert (refused.error, refused.hits[0]["ticket"]) == ("unanswered", printer.pk)
    assert results(claude)[0]["tickets"][0]["id"] == printer.pk
    shown = [event for event in events if isinstance(event, CandidatesFound)]
    assert shown[-1].outcome.hits[0].ticket == printer


def test_after_the_gates_own_find_was_answered_it_is_created(
    ask: Ask, claude: ScriptedClaude, printer: Ticket
) -> None:
    claude.reply(Use("find_similar_tickets", {"query": "cafeteria menu"})).reply(CREATE).reply(
        "Is it that one?"
    )
    claude.reply(CREATE).reply("Created.")
    ask(PROBLEM)
    ask("No")
    assert len(created()) == 1


def test_creates_twice_for_one_search(
    ask: Ask, claude: ScriptedClaude, alice: User, index: Callable[[], None]
) -> None:
    claude.reply(SEARCH).reply(CREATE, Use("create_ticket", {"title": "Second", "description": ""})).reply(
        "Done."
    )
    turn, _events = ask(PROBLEM)
    assert len(created()) == 1
    assert Ticket.objects.count() == 1
    assert [call.error for call in turn.tool_calls.all()] == ["", "", "no_search"]


def test_when_the_search_is_unavailable_it_creates_and_marks(
    ask: Ask, claude: ScriptedClaude, settings: Settings
) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    claude.reply(SEARCH).reply(CREATE).reply("Created, unchecked.")
    ask(PROBLEM)
    assert created()[0].duplicate_check == "unavailable"
    search = json.loads(claude.requests[1].tool_results()[0]["content"])
    assert search["outcome"] == "unavailable"
    assert "not available" in search["reason"]
    assert "never say" in search["reason"]


def test_unavailable_still_needs_a_search(ask: Ask, claude: ScriptedClaude, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    claude.reply(CREATE).reply("Oh.")
    turn, _events = ask(PROBLEM)
    assert created() == []
    assert turn.tool_calls.get().error == "no_search"


def test_a_receipt_of_another_conversation_is_none(
    ask: Ask, claude: ScriptedClaude, conversation: Conversation, alice: User, index: Callable[[], None]
) -> None:
    other = Conversation.objects.create(user=alice)
    claude.reply(SEARCH).reply("Nothing.").reply(CREATE).reply("Oh.")
    ask(PROBLEM)
    conversation.tool_calls.update(conversation=other)
    ask("Create it")
    assert created() == []


def test_a_failed_search_is_no_receipt(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Use("find_similar_tickets", {"query": "   "})).reply(CREATE).reply("Oh.")
    turn, _events = ask(PROBLEM)
    assert created() == []
    assert [call.error for call in turn.tool_calls.all()] == ["invalid", "no_search"]
