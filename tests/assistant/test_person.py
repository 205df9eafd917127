"""The person is in command: stop, close, retry, ask again, undo. Two tabs, double clicks, crashes."""

import asyncio
import threading
from contextlib import aclosing
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django import Settings

from assistant import client, loop, rounds, services, store
from assistant.events import Event, Silence, TextDelta, TurnFinished, TurnStarted
from assistant.models import Conversation, Message, ToolCall, Turn
from assistant.prices import PRICES
from assistant.services import Refused, post_message, retry_turn, stop_turn, undo_last_change
from tests.assistant.conftest import Ask, collect, ending, run
from tests.factories import TicketFactory, UserFactory
from tests.fakes.claude import Drop, Pace, Replay, ScriptedClaude
from tests.fakes.claude import ToolCall as Use
from tickets.models import Ticket, Via

SLOW = Pace(first=0.0, token=0.05)
LONG = "one two three four five six seven eight nine ten " * 10


def post(conversation: Conversation, text: str, key: str = "") -> services.Posted:
    key = key or f"key-{conversation.messages.count()}"
    return post_message(conversation=conversation, user=conversation.user, text=text, client_key=key)


async def read_until(turn_id: int, kind: type[Event]) -> list[Event]:
    """Read a turn up to the first event of a kind, then close it as a lost browser does."""
    seen: list[Event] = []
    async with aclosing(loop.run_turn(turn_id)) as events:
        async for event in events:
            seen.append(event)
            if isinstance(event, kind):
                break
    await client.client().close()
    return seen


# -- stop --------------------------------------------------------------------------------------------------


def test_closing_the_tab_ends_the_model_call(conversation: Conversation, claude: ScriptedClaude) -> None:
    claude.reply(LONG, pace=SLOW)
    turn = post(conversation, "Hello").turn
    asyncio.run(read_until(turn.pk, TextDelta))
    turn.refresh_from_db()
    assert (turn.status, turn.error) == ("interrupted", "disconnected")
    assert turn.partial
    assert len(turn.partial) < len(LONG)
    assert claude.requests[0].closed_by_client.wait(2)


def test_what_the_stand_in_says_is_not_put_down_to_claude(
    conversation: Conversation, claude: ScriptedClaude, settings: Settings
) -> None:
    settings.ASSISTANT_BACKEND = "rehearsal"
    claude.reply("Hello.")
    turn = post(conversation, "Hello").turn
    asyncio.run(collect(turn.pk))
    turn.refresh_from_db()
    assert turn.model == "rehearsal"
    assert turn.model not in PRICES


def test_stop_ends_the_model_call_and_runs_no_tool(
    conversation: Conversation, claude: ScriptedClaude
) -> None:
    claude.reply("Let me see, let me see, let me see.", Use("list_tickets", {}), pace=SLOW)
    turn = post(conversation, "List").turn
    events = asyncio.run(collect_and_stop(turn.pk))
    turn.refresh_from_db()
    assert isinstance(events[-1], TurnFinished)
    assert ending(events).status == "interrupted"
    assert (turn.status, turn.error, turn.tool_calls.count()) == ("interrupted", "stopped", 0)
    assert turn.partial.startswith("Let")
    assert claude.requests[0].closed_by_client.wait(2)


async def collect_and_stop(turn_id: int) -> list[Event]:
    """All events of a turn that is stopped at its first word."""
    events: list[Event] = []
    try:
        async for event in loop.run_turn(turn_id):
            if isinstance(event, TextDelta) and not any(isinstance(one, TextDelta) for one in events):
                await asyncio.to_thread(stop_in_own_connection, turn_id)
            events.append(event)
        return events
    finally:
        await client.client().close()


def stop_in_own_connection(turn_id: int) -> None:
    from django.db import connection

    turn = Turn.objects.select_related("conversation__user").get(pk=turn_id)
    stop_turn(turn, turn.conversation.user)
    connection.close()


def test_stop_from_another_process_is_noticed_by_the_heartbeat(
    conversation: Conversation, claude: ScriptedClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr("assistant.running.cancel", lambda turn_id: False)  # that process knows no such task
    claude.reply(LONG, pace=SLOW)
    turn = post(conversation, "Hello").turn
    stopper = threading.Timer(0.3, stop_in_own_connection, [turn.pk])
    stopper.start()
    asyncio.run(collect(turn.pk))
    stopper.join()
    turn.refresh_from_db()
    assert (turn.status, turn.error) == ("interrupted", "stopped")
    assert claude.requests[0].closed_by_client.wait(2)


def test_what_was_stopped_before_its_commit_writes_nothing(conversation: Conversation) -> None:
    turn = post(conversation, "Hello").turn
    store.claim(turn.pk, "m")
    stop_turn(turn, conversation.user)
    with pytest.raises(store.TurnClosed):
        store.commit_step(turn.pk, [{"type": "text", "text": "late"}], [])
    assert not Message.objects.filter(role="assistant").exists()


def test_stopping_twice_and_stopping_what_has_ended_changes_nothing(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("Hello.")
    turn, _events = ask("Hello")
    assert stop_turn(turn, turn.conversation.user).status == "done"


def test_the_broken_text_is_never_sent_as_an_answer(
    ask: Ask, conversation: Conversation, claude: ScriptedClaude
) -> None:
    claude.reply(LONG, pace=SLOW).reply("Yes.")
    turn = post(conversation, "Count").turn
    asyncio.run(read_until(turn.pk, TextDelta))
    ask("Are you there?")
    (message,) = claude.requests[1].body["messages"]
    assert message["role"] == "user"
    texts = [block["text"] for block in message["content"]]
    assert texts[0] == "Count"
    assert any("before your previous answer was finished" in text and "incomplete" in text for text in texts)


# -- retry -------------------------------------------------------------------------------------------------


def test_retry_does_not_repeat_what_was_written(ask: Ask, claude: ScriptedClaude, alice: User) -> None:
    ticket = TicketFactory(title="Door", reporter=alice)
    claude.reply(Use("add_comment", {"ticket_id": ticket.pk, "body": "Me too"})).reply(
        "Do", fault=Drop(after=5)
    )
    claude.reply("Done.")
    turn, _events = ask("Me too")
    assert turn.status == "interrupted"
    again = retry_turn(turn, alice)
    assert retry_turn(turn, alice) == again
    run(again)
    assert (again.status, again.retry_of) == ("done", turn)
    assert ticket.comments.count() == 1
    assert [message["role"] for message in claude.requests[2].body["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_only_the_last_broken_turn_can_be_retried(ask: Ask, claude: ScriptedClaude, alice: User) -> None:
    claude.reply("Hello.").reply("Hi", fault=Drop(after=5)).reply("Yes.")
    done, _events = ask("Hello")
    with pytest.raises(Refused):
        retry_turn(done, alice)
    broken, _events = ask("Again")
    ask("Are you there?")
    with pytest.raises(Refused) as refused:
        retry_turn(broken, alice)
    assert "newer message" in str(refused.value.sentence)


# -- several messages, tabs, clicks ------------------------------------------------------------------------


def test_double_submit_is_one_turn(conversation: Conversation) -> None:
    first, second = post(conversation, "Hello", "k"), post(conversation, "Hello", "k")
    assert first.turn == second.turn
    assert (first.duplicate, second.duplicate) == (False, True)
    assert conversation.messages.filter(from_person=True).count() == 1


def test_messages_sent_while_a_turn_runs_are_answered_together(
    conversation: Conversation, claude: ScriptedClaude
) -> None:
    claude.reply("First answer.").reply("Both answered.")
    turn = post(conversation, "One").turn
    store.claim(turn.pk, "m")
    for text in ("Two", "Three"):
        posted = post(conversation, text)
        assert (posted.waiting, posted.turn) == (True, turn)
    Turn.objects.filter(pk=turn.pk).update(status="queued")
    events = run(turn)
    following = conversation.turns.latest("pk")
    assert ending(events).next_turn_id == following.pk
    assert (following.status, following.question) == ("queued", "Two\n\nThree")
    run(following)
    assert following.answer == "Both answered."
    roles = [message["role"] for message in claude.requests[1].body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert [block["text"] for block in claude.requests[1].body["messages"][2]["content"]][:2] == [
        "Two",
        "Three",
    ]


def test_messages_before_the_turn_begins_join_it(conversation: Conversation) -> None:
    first, second = post(conversation, "One"), post(conversation, "Two")
    assert first.turn == second.turn
    assert second.turn.question == "One\n\nTwo"


def test_what_waits_is_answered_after_a_stop(conversation: Conversation, alice: User) -> None:
    turn = post(conversation, "One").turn
    store.claim(turn.pk, "m")
    post(conversation, "Two")
    stop_turn(turn, alice)
    following = conversation.turns.latest("pk")
    assert (following.question, following.status) == ("Two", "queued")


def test_two_tabs_of_one_conversation_answer_once(conversation: Conversation, claude: ScriptedClaude) -> None:
    claude.reply("Hello.", pace=Pace(first=0.2))
    turn = post(conversation, "Hello").turn

    async def both() -> tuple[list[Event], list[Event]]:
        return await asyncio.gather(collect(turn.pk), collect_after(0.1, turn.pk))

    one, other = asyncio.run(both())
    assert len(claude.requests) == 1
    assert TextDelta("Hello.") in one
    assert [type(event) for event in other if not isinstance(event, Silence)] == [TurnStarted, TurnFinished]
    assert ending(other).status == "done"


async def collect_after(seconds: float, turn_id: int) -> list[Event]:
    await asyncio.sleep(seconds)
    return [event async for event in loop.run_turn(turn_id)]


def test_one_active_turn_in_a_conversation_is_the_databases_rule(conversation: Conversation) -> None:
    Turn.objects.create(conversation=conversation)
    with pytest.raises(IntegrityError), transaction.atomic():
        Turn.objects.create(conversation=conversation, status="running")


def test_nobody_touches_the_conversation_of_another(
    conversation: Conversation, claude: ScriptedClaude
) -> None:
    bob = UserFactory(agent=True)
    turn = post(conversation, "Hello").turn
    with pytest.raises(Conversation.DoesNotExist):
        post_message(conversation=conversation, user=bob, text="Hi", client_key="x")
    for act in (stop_turn, retry_turn, undo_last_change, services.continue_turn):
        with pytest.raises(Turn.DoesNotExist):
            act(turn, bob)


# -- crashes -----------------------------------------------------------------------------------------------


def test_a_turn_whose_process_died_is_closed_though_nobody_looks(conversation: Conversation) -> None:
    dead, alive = (
        post(conversation, "Hello").turn,
        post(Conversation.objects.create(user=conversation.user), "Hello").turn,
    )
    for turn in (dead, alive):
        store.claim(turn.pk, "m")
    Turn.objects.filter(pk=dead.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    rounds.look_after_turns()
    dead.refresh_from_db()
    alive.refresh_from_db()
    assert (dead.status, dead.error, alive.status) == ("interrupted", "abandoned", "running")


def test_a_turn_whose_process_died_is_closed_at_the_next_look(
    ask: Ask, conversation: Conversation, claude: ScriptedClaude
) -> None:
    claude.reply("Yes.")
    turn = post(conversation, "Hello").turn
    store.claim(turn.pk, "m")
    store.keep_alive(turn.pk, "I was abou")
    assert services.close_abandoned_turns() == 0
    Turn.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert services.close_abandoned_turns(conversation) == 1
    turn.refresh_from_db()
    assert (turn.status, turn.error, turn.partial) == ("interrupted", "abandoned", "I was abou")
    answered, _events = ask("Are you there?")
    assert answered.status == "done"


def test_following_a_dead_turn_ends(conversation: Conversation) -> None:
    turn = post(conversation, "Hello").turn
    store.claim(turn.pk, "m")
    Turn.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    events = asyncio.run(collect_after(0, turn.pk))
    assert ending(events).status == "interrupted"


def test_a_crash_between_write_and_save_leaves_nothing(
    ask: Ask, claude: ScriptedClaude, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = TicketFactory(title="Door", reporter=alice)
    claude.reply(Use("add_comment", {"ticket_id": ticket.pk, "body": "Me too"}))
    monkeypatch.setattr(store, "_result_block", lambda call: 1 / 0)
    turn, _events = ask("Me too")
    assert (turn.status, turn.error) == ("failed", "internal")
    assert ticket.comments.count() == 0
    assert not ToolCall.objects.exists()
    assert not Message.objects.filter(role="assistant").exists()


def test_a_replayed_answer_writes_once(ask: Ask, claude: ScriptedClaude, alice: User) -> None:
    ticket = TicketFactory(title="Door", reporter=alice)
    claude.reply(Use("add_comment", {"ticket_id": ticket.pk, "body": "Me too"})).fail(Replay()).reply("Done.")
    turn, _events = ask("Me too")
    assert turn.status == "done"
    assert ticket.comments.count() == 1
    assert [call.error for call in turn.tool_calls.all()] == ["", "repeated"]
    ids = [call.tool_use_id for call in turn.tool_calls.all()]
    assert len(set(ids)) == 2


def test_a_tool_use_runs_once_is_the_databases_rule(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Use("list_tickets", {})).reply("Done.")
    turn, _events = ask("List")
    call = turn.tool_calls.get()
    call.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        call.save(force_insert=True)


# -- undo --------------------------------------------------------------------------------------------------


@pytest.fixture
def changed(ask: Ask, claude: ScriptedClaude, alice: User) -> tuple[Turn, Ticket]:
    ticket = TicketFactory(title="Door", reporter=alice, assignee=alice)
    claude.reply(
        Use(
            "update_ticket",
            {"ticket_id": ticket.pk, "status": "resolved", "priority": "high", "assignee": "nobody"},
        )
    ).reply("Done.")
    turn, _events = ask("Resolve it")
    ticket.refresh_from_db()
    assert (ticket.status, ticket.priority, ticket.assignee) == ("resolved", "high", None)
    return turn, ticket


def test_undo_restores_what_was_there(
    changed: tuple[Turn, Ticket], alice: User, ask: Ask, claude: ScriptedClaude
) -> None:
    turn, ticket = changed
    undo_last_change(turn, alice)
    undo_last_change(turn, alice)  # a double click
    ticket.refresh_from_db()
    assert (ticket.status, ticket.priority, ticket.assignee, ticket.resolved_at) == (
        "new",
        "normal",
        alice,
        None,
    )
    assert turn.tool_calls.get().undone_at is not None
    claude.reply("I see.")
    ask("Thanks")
    assert "taken back your last change" in str(claude.requests[-1].body["messages"][-1])


def test_undo_is_refused_when_the_ticket_has_changed_since(changed: tuple[Turn, Ticket], alice: User) -> None:
    turn, ticket = changed
    ticket.change(by=alice, via=Via.ADMIN, priority="urgent")
    with pytest.raises(Refused) as refused:
        undo_last_change(turn, alice)
    assert f"#{ticket.pk}" in str(refused.value.sentence)
    ticket.refresh_from_db()
    assert (ticket.status, ticket.priority) == ("resolved", "urgent")


@pytest.mark.parametrize("gone", ["not staff", "deleted"])
def test_undo_is_refused_when_what_was_there_is_no_longer_possible(
    ask: Ask, claude: ScriptedClaude, alice: User, gone: str
) -> None:
    bob = UserFactory(agent=True)
    ticket = TicketFactory(reporter=alice, assignee=bob)
    claude.reply(Use("update_ticket", {"ticket_id": ticket.pk, "assignee": "nobody"})).reply("Done.")
    turn, _events = ask("Nobody does it")
    if gone == "deleted":
        bob.delete()
    else:
        User.objects.filter(pk=bob.pk).update(is_staff=False)
    with pytest.raises(Refused, match="nothing was undone"):
        undo_last_change(turn, alice)
    ticket.refresh_from_db()
    assert ticket.assignee is None
    assert turn.tool_calls.get().undone_at is None


def test_undo_needs_a_change_and_the_right(
    changed: tuple[Turn, Ticket], alice: User, ask: Ask, claude: ScriptedClaude
) -> None:
    turn, _ticket = changed
    claude.reply("Hello.")
    other, _events = ask("Hello")
    with pytest.raises(Refused, match="no change"):
        undo_last_change(other, alice)
    alice.user_permissions.clear()
    with pytest.raises(Refused, match="not change"):
        undo_last_change(turn, User.objects.get(pk=alice.pk))
