"""Every fault of the line: its own sentence, retries while nothing was visible, a turn that has ended."""

import time

import pytest
from pytest_django import Settings

from assistant import calls, client, endings, faults, wording
from assistant.events import Retrying, TextDelta, TurnFinished
from assistant.models import Turn
from assistant.services import retry_turn
from assistant.tools import finding
from retrieval import sentences
from tests.assistant.conftest import Ask, run
from tests.fakes.claude import (
    Drop,
    EndEarly,
    ErrorEvent,
    Fault,
    Hang,
    HttpError,
    Malformed,
    RawBody,
    ScriptedClaude,
)
from tests.fakes.claude import ToolCall as Use

FINAL = [
    (HttpError("authentication_error"), "key_refused", "ANTHROPIC_API_KEY"),
    (HttpError("invalid_request_error"), "bad_request", "rejected the request"),
    (HttpError("billing_error"), "payment", "credit"),
    (HttpError("permission_error"), "forbidden", "permissions"),
    (HttpError("not_found_error"), "model_unknown", "claude-sonnet-5-5"),
    (HttpError("request_too_large"), "too_large", "too large"),
    (RawBody(404), "unreachable_api", "ANTHROPIC_BASE_URL"),
]
PASSING = [
    (HttpError("rate_limit_error"), "rate_limited", "no more requests"),
    (HttpError("api_error"), "server_error", "internal fault"),
    (HttpError("overloaded_error"), "overloaded", "overloaded"),
    (HttpError("timeout_error"), "timeout", "in time"),
    (ErrorEvent(after=1), "overloaded", "overloaded"),
    (ErrorEvent(after=1, type="api_error"), "server_error", "internal fault"),
    (Drop(after=0), "unreachable", "cannot be reached"),
    (Drop(after=1), "connection_lost", "broke off"),
    (EndEarly(after=1), "connection_lost", "broke off"),
    (Malformed(after=1), "garbled", "could not be read"),
    (RawBody(502), "server_error", "internal fault"),
    (RawBody(200), "garbled", "could not be read"),
    (RawBody(200, b"", "text/event-stream"), "garbled", "could not be read"),
]


def sentence(events: list) -> str:
    assert isinstance(events[-1], TurnFinished)
    return str(events[-1].sentence)


@pytest.mark.parametrize(("fault", "code", "words"), FINAL, ids=str)
def test_faults_that_no_retry_helps(
    ask: Ask, claude: ScriptedClaude, fault: Fault, code: str, words: str
) -> None:
    claude.fail(fault)
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", code)
    assert words in sentence(events)
    assert not [event for event in events if isinstance(event, Retrying)]


@pytest.mark.parametrize("fault", [fault for fault, _code, _words in PASSING], ids=str)
def test_passing_faults_are_retried_visibly(ask: Ask, claude: ScriptedClaude, fault: Fault) -> None:
    claude.fail(fault).reply("Here I am.")
    turn, events = ask("Hello")
    assert (turn.status, turn.answer) == ("done", "Here I am.")
    retrying = [event for event in events if isinstance(event, Retrying)]
    assert [event.attempt for event in retrying] == [1]
    assert "trying again" in str(retrying[0].reason)


@pytest.mark.parametrize(("fault", "code", "words"), PASSING, ids=str)
def test_lasting_faults_end_with_their_sentence(
    ask: Ask, claude: ScriptedClaude, fault: Fault, code: str, words: str
) -> None:
    claude.fail(fault).fail(fault).fail(fault)
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", code)
    assert words in sentence(events)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Drop(after=5), "connection_lost"),
        (EndEarly(after=5), "connection_lost"),
        (ErrorEvent(after=5), "overloaded"),
        (Malformed(after=5), "garbled"),
    ],
    ids=str,
)
def test_after_visible_text_nothing_is_retried(
    ask: Ask, claude: ScriptedClaude, fault: Fault, code: str
) -> None:
    claude.fail(fault).reply("All of it.")
    turn, events = ask("Hello")
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said
    assert "This answer never arrives in full.".startswith(said)
    assert (turn.status, turn.error, turn.answer, turn.partial) == ("interrupted", code, "", said)
    assert claude.unused == 1
    again = retry_turn(turn, turn.conversation.user)
    run(again)
    assert (again.status, again.answer) == ("done", "All of it.")
    messages = claude.requests[1].body["messages"]
    assert [message["role"] for message in messages] == ["user"]
    assert said in str(messages)  # in the note, not as an answer


def test_waits_as_long_as_the_server_asks(ask: Ask, claude: ScriptedClaude) -> None:
    claude.fail(HttpError("rate_limit_error", headers={"retry-after": "0.3"})).reply("Now.")
    started = time.monotonic()
    turn, events = ask("Hello")
    assert turn.status == "done"
    assert time.monotonic() - started >= 0.3
    assert next(event.seconds for event in events if isinstance(event, Retrying)) == 0.3


def test_does_not_wait_for_minutes(ask: Ask, claude: ScriptedClaude) -> None:
    claude.fail(HttpError("rate_limit_error", headers={"retry-after": "300"}))
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", "rate_limited_until")
    assert "300 s" in sentence(events)


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf", ""])
def test_a_senseless_retry_after_is_ignored(ask: Ask, claude: ScriptedClaude, value: str) -> None:
    claude.fail(HttpError("rate_limit_error", headers={"retry-after": value})).reply("Now.")
    assert ask("Hello")[0].status == "done"


def test_a_server_that_never_answers(
    ask: Ask, claude: ScriptedClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(calls, "RETRY_SECONDS", ())
    claude.fail(Hang(after=0))
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", "timeout")
    assert "in time" in sentence(events)


def test_silence_within_the_stream(ask: Ask, claude: ScriptedClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.3)
    claude.fail(Hang(after=5))
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("interrupted", "stalled")
    assert turn.partial
    assert "stopped coming in" in sentence(events)


def test_nothing_but_pings(ask: Ask, claude: ScriptedClaude, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(calls, "RETRY_SECONDS", ())
    claude.fail(Hang(after=2))
    turn, _events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", "stalled")


def test_nobody_listens_at_the_address(ask: Ask, claude: ScriptedClaude, settings: Settings) -> None:
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
    turn, events = ask("Hello")
    assert (turn.status, turn.error) == ("failed", "unreachable")
    assert "cannot be reached" in sentence(events)


def test_a_fault_after_tools_keeps_what_they_did(ask: Ask, claude: ScriptedClaude) -> None:
    claude.reply("I look.", Use("list_tickets", {})).fail(HttpError("invalid_request_error")).reply(
        "Nothing new."
    )
    turn, _events = ask("List")
    assert (turn.status, turn.error, turn.answer) == ("failed", "bad_request", "I look.")
    again = retry_turn(turn, turn.conversation.user)
    run(again)
    assert (again.status, again.tool_calls.count()) == ("done", 0)
    assert [message["role"] for message in claude.requests[2].body["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_no_secret_and_no_body_in_what_is_stored(
    ask: Ask, claude: ScriptedClaude, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ANTHROPIC_API_KEY = "sk-ant-very-secret"
    claude.fail(HttpError("authentication_error", message="the body says sk-ant-very-secret"))
    turn, events = ask("Hello")
    stored = str(Turn.objects.filter(pk=turn.pk).values())
    assert "very-secret" not in stored + sentence(events) + caplog.text


def test_every_fault_and_stop_reason_has_a_label() -> None:
    assert faults.LABELS.keys() == faults.SENTENCES.keys()
    assert endings.BY_REASON.keys() <= wording.STOP_REASONS.keys()
    assert finding.REASONS.keys() <= sentences.REASONS.keys()
