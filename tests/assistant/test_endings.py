"""Every way a model call can end, shown as what it is."""

from pytest_django import Settings

from assistant.services import continue_turn
from tests.assistant.conftest import Ask, ending, run
from tests.fakes.claude import ScriptedClaude, Thinking
from tests.fakes.claude import ToolCall as Use


def test_several_tools_in_one_message_after_text_and_thinking(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(
        Thinking("two"),
        "I look.",
        Use("list_tickets", {"status": "new"}),
        Use("list_tickets", {"status": "open"}),
    ).reply("Nothing.")
    turn, _events = ask("What is there?")
    assert [call.name for call in turn.tool_calls.all()] == ["list_tickets", "list_tickets"]
    assert turn.answer == "I look.\n\nNothing."
    assert [block["type"] for block in claude.requests[1].body["messages"][-1]["content"]] == [
        "tool_result"
    ] * 2


def test_thinking_goes_back_with_its_signature(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Thinking("deep"), Use("list_tickets", {})).reply("Done.")
    ask("List")
    thinking = claude.requests[1].body["messages"][1]["content"][0]
    assert thinking["type"] == "thinking"
    assert thinking["signature"]


def test_max_tokens_in_text_is_cut_and_can_be_continued(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("The first half", stop_reason="max_tokens").reply("and the second.")
    turn, events = ask("Tell me")
    assert (turn.status, turn.stop_reason, turn.error) == ("interrupted", "max_tokens", "cut")
    assert turn.can_continue
    assert "cut off" in str(ending(events).sentence)
    following = continue_turn(turn, turn.conversation.user)
    assert continue_turn(turn, turn.conversation.user) == following
    run(following)
    assert (following.status, following.answer) == ("done", "and the second.")
    sent = claude.requests[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert "cut off" in sent[-1]["content"][-1]["text"]


def test_max_tokens_inside_a_tool_call_runs_nothing_and_tells_the_model(
    ask: Ask, claude: ScriptedClaude
) -> None:
    claude.reply(Use("create_ticket", {"title": "x", "description": "y"}), stop_reason="max_tokens")
    claude.reply("I could not.")
    turn, _events = ask("Create")
    call = turn.tool_calls.get()
    assert (call.is_error, call.error, call.ticket) == (True, "cut", None)
    assert "cut off" in claude.requests[1].tool_results()[0]["content"]
    assert turn.status == "done"


def test_max_tokens_while_thinking_is_cut_without_text(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Thinking("endless"), stop_reason="max_tokens").reply("Now.")
    turn, _events = ask("Think")
    assert (turn.status, turn.error, turn.answer) == ("interrupted", "cut", "")
    again, _events = ask("Well?")
    assert again.status == "done"


def test_refusal_is_failed_and_the_declined_message_is_not_sent_again(
    ask: Ask, claude: ScriptedClaude
) -> None:
    claude.reply("I", stop_reason="refusal").reply("Hello.")
    turn, events = ask("Something terrible")
    assert (turn.status, turn.error, turn.answer, turn.partial) == ("failed", "refusal", "", "I")
    assert "declined" in str(ending(events).sentence)
    turn, _events = ask("Hello")
    assert turn.status == "done"
    assert "terrible" not in str(claude.requests[1].body["messages"])
    assert "safety filter" in str(claude.requests[1].body["messages"])


def test_pause_turn_is_resumed(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("First part.", stop_reason="pause_turn").reply("Second part.")
    turn, _events = ask("Go on")
    assert (turn.status, turn.steps, turn.answer) == ("done", 2, "First part.\n\nSecond part.")
    assert claude.requests[1].body["messages"][-1]["role"] == "assistant"


def test_a_conversation_goes_on_after_a_pause(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("First part.", stop_reason="pause_turn").reply("Second part.").reply("Third.")
    ask("Go on")
    turn, _events = ask("And?")
    assert turn.status == "done"
    assert [message["role"] for message in claude.requests[2].body["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_full_context_window_keeps_the_text_and_starts_afresh(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("Half an ans", stop_reason="model_context_window_exceeded").reply("Fresh.")
    turn, events = ask("Long story")
    assert (turn.status, turn.error) == ("interrupted", "context_full")
    assert "too long" in str(ending(events).sentence)
    turn, _events = ask("And now?")
    sent = str(claude.requests[1].body["messages"])
    assert "Long story" not in sent
    assert "2 earlier messages" in sent
    assert (turn.status, turn.messages_left_out) == ("done", 2)


def test_full_context_window_in_a_tool_call_does_not_run_it(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("I list.", Use("list_tickets", {}), stop_reason="model_context_window_exceeded")
    turn, _events = ask("List")
    assert (turn.status, turn.error, turn.tool_calls.count()) == ("interrupted", "context_full", 0)


def test_stop_sequence_may_be_incomplete(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("Something", stop_reason="stop_sequence")
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("interrupted", "stop_sequence")
    assert "incomplete" in str(ending(events).sentence)


def test_an_unknown_reason_is_named(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("Something", stop_reason="moon_phase")
    turn, events = ask("Hello")
    assert (turn.status, turn.error, turn.stop_reason) == ("interrupted", "unknown_stop", "moon_phase")
    assert '"moon_phase"' in str(ending(events).sentence)


def test_an_empty_answer_is_asked_for_once_more(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(Use("list_tickets", {})).reply(stop_reason="end_turn").reply("There is nothing.")
    turn, _events = ask("List")
    assert (turn.status, turn.answer, turn.steps) == ("done", "There is nothing.", 3)


def test_two_empty_answers_are_a_failure(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply(stop_reason="end_turn").reply("  \n ", stop_reason="end_turn").reply("Hello.")
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", "empty_answer")
    assert "no answer" in str(ending(events).sentence)
    turn, _events = ask("Hello?")
    assert turn.status == "done"


def test_the_last_step_may_not_use_tools(ask: Ask, claude: ScriptedClaude, settings: Settings) -> None:
    settings.ASSISTANT_MAX_STEPS = 3
    claude.reply(Use("list_tickets", {})).reply(Use("list_tickets", {})).reply("That is all I know.")
    turn, _events = ask("List")
    assert turn.status == "done"
    assert [exchange.body["tool_choice"]["type"] for exchange in claude.requests] == ["auto", "auto", "none"]


def test_a_tool_call_in_the_last_step_is_not_run(
    ask: Ask, claude: ScriptedClaude, settings: Settings
) -> None:
    settings.ASSISTANT_MAX_STEPS = 1
    claude.reply(Use("list_tickets", {})).reply("Hello.")
    turn, events = ask("List")
    assert (turn.status, turn.error) == ("interrupted", "step_limit")
    assert turn.tool_calls.get().error == "steps"
    assert "1" in str(ending(events).sentence)
    turn, _events = ask("Hello")
    assert turn.status == "done"
