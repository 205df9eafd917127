"""The rehearsal model by its rules; then once as the process that people start."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from assistant.messages_api.replies import Text, ToolCall
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import validate_request
from assistant.rehearsal.intents import Intent, read_wish
from assistant.rehearsal.language import is_german
from assistant.rehearsal.rules import respond
from assistant.tools.arguments import checked
from assistant.tools.definitions import DEFINITIONS
from tests.assistant.conftest import Ask
from tests.factories import TicketFactory
from tests.fakes.claude import ScriptedClaude
from tickets.models import Ticket

HEADERS = {
    "authorization": "Bearer t",
    "anthropic-version": "2026-10-21",
    "content-type": "application/json",
}
PRINTER = "Drucker im zweiten Stock reagiert nicht"
CONTEXT = '<note>It is Tuesday, 2026-12-01 08:30 UTC. The person is "Alice" (user name "alice").</note>'

FOUND: dict[str, Any] = {
    "outcome": "found",
    "reason": "",
    "coverage": {"indexed": 60, "total": 60, "oldest_unindexed_seconds": None},
    "tickets": [
        {
            "id": 12,
            "title": "Printout fails on second floor",
            "status": "open",
            "age_days": 3,
            "similarity": 0.71,
            "band": "likely",
            "matched": ["meaning"],
        },
        {
            "id": 7,
            "title": "Toner empty *again*",
            "status": "resolved",
            "age_days": 40,
            "similarity": 0.5,
            "band": "possible",
            "matched": ["meaning"],
            "resolution": "Toner replaced",
        },
    ],
}
NOTHING = {"outcome": "nothing", "reason": "", "coverage": {"indexed": 60, "total": 60}, "tickets": []}
UNAVAILABLE = {
    "outcome": "unavailable",
    "reason": "The search by meaning is not available: the embedding provider cannot be reached now. "
    "You have not looked for tickets that mean the same: tell the person so, never say that there are none.",
    "coverage": {"indexed": 0, "total": 60},
    "tickets": [],
}


COMMENTED = {"add_comment": {"ticket_id": 7, "comment_id": 7}}


class Refusal(dict[str, Any]):
    """A tool result with is_error."""


class Chat:
    """Plays the loop: sends what a person says, and answers each tool call from a table.

    Every request is checked as the API would do it, every tool call as the tools would.
    """

    def __init__(self, **results: dict[str, Any]) -> None:
        self.results = results
        self.messages: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.ledger = Ledger()

    def say(self, *texts: str, tool_choice: str = "auto") -> str:
        """What the model answers in the end, all texts of the turn together."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text} for text in texts]})
        answer: list[str] = []
        for _ in range(6):
            content = self._ask(tool_choice)
            answer += [block["text"] for block in content if block["type"] == "text"]
            results = [self._run(block) for block in content if block["type"] == "tool_use"]
            if not results:
                return "\n".join(answer)
            self.messages.append({"role": "user", "content": results})
        raise AssertionError("the model does not come to an end")

    def _ask(self, tool_choice: str) -> list[dict[str, Any]]:
        body = {
            "model": "claude-sonnet-5-5",
            "max_tokens": 2048,
            "tools": DEFINITIONS,
            "tool_choice": {"type": tool_choice},
            "messages": self.messages,
        }
        request = validate_request(body, headers=HEADERS, ledger=self.ledger)
        content = [self._block(block) for block in respond(request.body).blocks]
        self.messages.append({"role": "assistant", "content": content})
        return content

    def _block(self, block: Any) -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        assert isinstance(block, ToolCall)
        self.calls.append((block.name, checked(block.name, dict(block.input))))
        return {
            "type": "tool_use",
            "id": f"toolu_{len(self.calls)}",
            "name": block.name,
            "input": dict(block.input),
        }

    def _run(self, block: dict[str, Any]) -> dict[str, Any]:
        result = self.results[block["name"]]
        return {
            "type": "tool_result",
            "tool_use_id": block["id"],
            "content": json.dumps(result),
            "is_error": isinstance(result, Refusal),
        }


def created(number: int = 63, check: str = "searched") -> dict[str, Any]:
    return {"created": True, "ticket": {"id": number, "title": PRINTER, "duplicate_check": check}}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Hallo", "Hallo!"),
        ("Guten Morgen zusammen!", "Hallo!"),
        ("Hi", "Hello!"),
        ("Good morning", "Hello!"),
        ("Vielen Dank!", "Gern geschehen"),
        ("thanks a lot", "You are welcome"),
        ("Wie spät ist es?", "Uhr"),
        ("What time is it?", "clock"),
        ("Was kannst du?", "nicht Claude"),
        ("Who are you?", "not Claude"),
        ("Wie wird das Wetter?", "nicht verstanden"),
        ("asdf", "not Claude"),
    ],
)
def test_small_talk_needs_no_tool(words: str, expected: str) -> None:
    chat = Chat()
    assert expected in chat.say(words)
    assert chat.calls == []


@pytest.mark.parametrize(
    "words", ["The VPN disconnects all the time", "Das Terminal am Eingang bucht die falsche Uhrzeit"]
)
def test_a_problem_that_speaks_of_time_is_a_problem(words: str) -> None:
    assert read_wish(words, asked=False).intent is Intent.PROBLEM


@pytest.mark.parametrize(
    "words", ["What's the time?", "Welches Datum haben wir heute?", "What day is it today?"]
)
def test_asks_for_the_time(words: str) -> None:
    assert read_wish(words, asked=False).intent is Intent.TIME


def test_tells_the_time_it_was_given() -> None:
    assert "08:30 UTC am 2026-12-01" in Chat().say(CONTEXT, "Wie spät ist es?")


def test_problem_is_searched_in_the_persons_words_and_presented() -> None:
    chat = Chat(find_similar_tickets=FOUND)
    answer = chat.say(CONTEXT, f"Hallo, {PRINTER}")
    assert chat.calls == [("find_similar_tickets", {"query": PRINTER})]
    assert "**#12** Printout fails on second floor · offen · wahrscheinlich · 3 Tage alt" in answer
    assert (
        "**#7** Toner empty \\*again\\* · gelöst · möglich · 40 Tage alt · gelöst durch: Toner replaced"
        in answer
    )
    assert "eines davon?" in answer


def test_answers_in_english_to_english() -> None:
    answer = Chat(find_similar_tickets=FOUND).say("The printer on the second floor does not respond")
    assert "Is it one of these?" in answer
    assert "open · likely · 3 days old" in answer


@pytest.mark.parametrize("yes", ["Ja, genau", "das ist es", "Das habe ich auch"])
def test_yes_adds_a_comment_to_the_first_candidate(yes: str) -> None:
    chat = Chat(find_similar_tickets=FOUND, add_comment={"ticket_id": 12, "comment_id": 7})
    chat.say(PRINTER)
    answer = chat.say(yes)
    assert chat.calls[1:] == [("add_comment", {"ticket_id": 12, "body": f"Das habe ich auch: {PRINTER}"})]
    assert "#12" in answer


@pytest.mark.parametrize("named", ["ja, #7", "#7", "It is ticket 7, yes", "Yes, that is ticket #7."])
def test_a_named_candidate_gets_the_comment(named: str) -> None:
    chat = Chat(find_similar_tickets=FOUND, **COMMENTED)
    chat.say(PRINTER)
    chat.say(named)
    assert chat.calls[1][1]["ticket_id"] == 7


@pytest.mark.parametrize("words", ["show #7", "zeig mir #7"])
def test_a_candidate_can_be_looked_at_before_the_answer(words: str) -> None:
    chat = Chat(find_similar_tickets=FOUND, get_ticket={"ticket": {"id": 7, "title": "Toner"}}, **COMMENTED)
    chat.say(PRINTER)
    chat.say(words)
    chat.say("ja, #7")
    assert [name for name, _ in chat.calls] == ["find_similar_tickets", "get_ticket", "add_comment"]


@pytest.mark.parametrize(
    "no",
    [
        "nein, das ist ein anderes Problem",
        "Nein",
        "Keins davon",
        "No, #12 is a different problem.",
        "none of these",
    ],
)
def test_no_creates_a_ticket_from_the_problem_not_from_the_no(no: str) -> None:
    chat = Chat(find_similar_tickets=FOUND, create_ticket=created())
    chat.say(PRINTER)
    answer = chat.say(no)
    assert chat.calls[1:] == [("create_ticket", {"title": PRINTER, "description": PRINTER})]
    assert "#63" in answer


def test_a_new_problem_instead_of_an_answer_is_a_new_search() -> None:
    chat = Chat(find_similar_tickets=FOUND)
    chat.say(PRINTER)
    chat.say("Der VPN-Client trennt jede Stunde die Verbindung")
    assert [name for name, _ in chat.calls] == ["find_similar_tickets"] * 2


def test_no_thanks_creates_nothing() -> None:
    chat = Chat(find_similar_tickets=FOUND)
    chat.say(PRINTER)
    assert "nichts angelegt" in chat.say("nein danke")
    assert len(chat.calls) == 1


def test_nothing_similar_leads_to_a_new_ticket() -> None:
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=created())
    answer = chat.say(PRINTER)
    assert [name for name, _ in chat.calls] == ["find_similar_tickets", "create_ticket"]
    assert "kein ähnliches Ticket gefunden" in answer
    assert "#63" in answer


def test_incomplete_coverage_is_told() -> None:
    partly = {**NOTHING, "coverage": {"indexed": 40, "total": 60}}
    assert "40 von 60" in Chat(find_similar_tickets=partly, create_ticket=created()).say(PRINTER)


def test_unavailable_search_is_not_told_as_nothing_found() -> None:
    chat = Chat(find_similar_tickets=UNAVAILABLE, create_ticket=created(check="unavailable"))
    answer = chat.say(PRINTER)
    assert (
        "konnte nicht nach Tickets suchen, die dasselbe meinen: der Anbieter ist nicht erreichbar." in answer
    )
    assert "never say" not in answer
    assert "nicht auf Dubletten geprüft" in answer
    assert "gefunden" not in answer


def test_unavailable_search_with_hits_by_words_asks() -> None:
    partly = {**FOUND, "outcome": "unavailable", "reason": "No key."}
    chat = Chat(find_similar_tickets=partly)
    answer = chat.say(PRINTER)
    assert "konnte nicht" in answer
    assert "#12" in answer
    assert [name for name, _ in chat.calls] == ["find_similar_tickets"]


def test_merely_possible_candidates_are_not_told_as_likely() -> None:
    possible = {**FOUND, "tickets": FOUND["tickets"][1:]}
    answer = Chat(find_similar_tickets=possible).say(PRINTER)
    assert "keines ist sicher dasselbe" in answer
    assert "könnte schon gemeldet sein" not in answer


def test_comment_is_in_the_language_of_the_problem() -> None:
    chat = Chat(find_similar_tickets=FOUND, **COMMENTED)
    chat.say("The printer does not respond")
    chat.say("ja")
    assert chat.calls[1][1]["body"] == "I have this too: The printer does not respond"


def test_search_by_name_creates_nothing() -> None:
    chat = Chat(find_similar_tickets=NOTHING)
    assert "kein ähnliches" in chat.say("Gibt es schon ein Ticket zum Beamer?")
    assert len(chat.calls) == 1


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("Was ist neu?", {"status": "new"}),
        ("What is open?", {"status": "unresolved"}),
        ("Wie viele Tickets sind offen?", {"status": "unresolved"}),
        ("how many urgent tickets are there", {"priority": "urgent"}),
        ("meine Tickets", {"reporter": "me"}),
        ("zeige mir meine Tickets", {"reporter": "me"}),
        ("zeige mir offene Tickets", {"status": "unresolved"}),
        ("show me open tickets", {"status": "unresolved"}),
        ("show me my open tickets", {"status": "unresolved", "reporter": "me"}),
        ("Was ist heute neu?", {"created_since": "2026-12-01"}),
    ],
)
def test_lists_are_answered_from_list_tickets(words: str, arguments: dict[str, str]) -> None:
    ticket = {
        "id": 5,
        "title": "Beamer flackert",
        "status": "new",
        "priority": "high",
        "age_days": 0,
        "assignee": "",
    }
    chat = Chat(list_tickets={"total": 41, "shown": 1, "tickets": [ticket]})
    answer = chat.say(CONTEXT, words)
    assert chat.calls == [("list_tickets", arguments)]
    assert "**41**" in answer
    assert "**#5** Beamer flackert" in answer


def test_a_whole_list_is_not_called_the_newest() -> None:
    answer = Chat(list_tickets={"total": 1, "shown": 1, "tickets": [{"id": 5, "title": "x"}]}).say(
        "what is new?"
    )
    assert answer.startswith("**1** ticket (new):\n\n- **#5** x")


def test_empty_list_says_zero() -> None:
    assert "**0** tickets" in Chat(list_tickets={"total": 0, "shown": 0, "tickets": []}).say("what is new?")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("close #12", {"status": "closed"}),
        ("Schließe #12: Toner gewechselt", {"status": "closed", "resolution": "Toner gewechselt"}),
        ("#12 priority high", {"priority": "high"}),
        ("setze #12 auf dringend", {"priority": "urgent"}),
        ("assign #12 to bob", {"assignee": "bob"}),
        ("reopen #12", {"status": "open"}),
    ],
)
def test_updates_name_only_what_was_asked_for(words: str, arguments: dict[str, str]) -> None:
    change = {"field": "priority", "old": "normal", "new": "high"}
    chat = Chat(update_ticket={"ticket_id": 12, "changes": [change]})
    answer = chat.say(words)
    assert chat.calls == [("update_ticket", {"ticket_id": 12, **arguments})]
    assert "#12" in answer
    assert "→" in answer


def test_update_without_effect_says_so() -> None:
    assert "nothing changed" in Chat(update_ticket={"ticket_id": 12, "changes": []}).say("close #12")


def test_shows_a_ticket_with_its_comments() -> None:
    comments = [{"author": "bob", "body": "Restarted it", "internal": True}]
    ticket = {"id": 12, "title": "Printout fails", "description": "Since Monday", "status": "open"}
    answer = Chat(get_ticket={"ticket": {**ticket, "comments": comments}}).say("show #12")
    assert "**#12 Printout fails**" in answer
    assert "Since Monday" in answer
    assert "bob (internal): Restarted it" in answer


def test_a_failed_tool_is_told_with_its_sentence() -> None:
    chat = Chat(update_ticket=Refusal(error="You may not change tickets."))
    assert "You may not change tickets." in chat.say("close #12")
    assert len(chat.calls) == 1


def test_a_failed_search_claims_nothing_and_creates_nothing() -> None:
    chat = Chat(find_similar_tickets=Refusal(error="You may not see tickets."))
    assert chat.say(PRINTER).endswith("You may not see tickets.")
    assert len(chat.calls) == 1


def test_refused_creation_is_not_repeated_for_ever() -> None:
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=Refusal(error="Search first."))
    assert "Search first." in chat.say(PRINTER)
    assert [name for name, _ in chat.calls] == ["find_similar_tickets", "create_ticket"]


def test_creation_refused_for_unseen_tickets_asks_about_them_first() -> None:
    seen_late = {**FOUND["tickets"][0], "id": 31}
    refused = Refusal(error="Not created: there are likely duplicates (#31). Name them.", tickets=[seen_late])
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=refused)
    answer = chat.say(PRINTER)
    assert "#31" in answer
    assert "Ist es dieses?" in answer
    assert "Name them" not in answer
    chat.results["create_ticket"] = created()
    assert "#63" in chat.say("nein")
    assert chat.calls[-1] == ("create_ticket", {"title": PRINTER, "description": PRINTER})


def test_yes_to_tickets_shown_with_a_refusal_adds_a_comment() -> None:
    refused = Refusal(error="Not created.", tickets=FOUND["tickets"])
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=refused, **COMMENTED)
    chat.say(PRINTER)
    chat.say("ja")
    assert chat.calls[-1][1]["ticket_id"] == 12


def test_creation_without_a_receipt_searches_again() -> None:
    chat = Chat(find_similar_tickets=FOUND, create_ticket=Refusal(error="Not created: nobody has looked."))
    chat.say(PRINTER)
    chat.results["find_similar_tickets"] = NOTHING
    chat.say("nein")
    assert [name for name, _ in chat.calls].count("find_similar_tickets") <= 2


def test_create_on_demand_searches_first() -> None:
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=created())
    chat.say("Erstelle ein Ticket: Beamer im Raum 204 flackert")
    assert chat.calls[0] == ("find_similar_tickets", {"query": "Beamer im Raum 204 flackert"})
    assert chat.calls[1][0] == "create_ticket"


def test_create_without_a_problem_asks_for_it() -> None:
    assert "in einem Satz" in Chat().say("Leg bitte ein Ticket an")


def test_without_tools_it_says_that_it_did_nothing() -> None:
    chat = Chat()
    assert "nichts nachgesehen" in chat.say(PRINTER, tool_choice="none")
    assert chat.calls == []


def test_pressed_button_counts_as_an_answer() -> None:
    chat = Chat(find_similar_tickets=FOUND, create_ticket=created())
    chat.say(PRINTER)
    chat.say(
        '<note>The person pressed "Not the same" for ticket 12: it is a different problem.</note>'
        '<note>The person pressed "Not the same" for ticket 7: it is a different problem.</note>'
    )
    assert chat.calls[1][0] == "create_ticket"


@pytest.mark.parametrize(
    "button",
    [
        "No, that is a different problem, not #12.",
        "Nein, das ist ein anderes Problem, nicht #12, #7.",
        "nein, das ist ein anderes Problem",
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_turning_down_a_card_is_never_a_problem_of_its_own(button: str, settled: bool) -> None:
    chat = Chat(find_similar_tickets=FOUND, create_ticket=created())
    chat.say(PRINTER)
    notes = ['<note>The person pressed "Not the same" for ticket 7: it is a different problem.</note>']
    other = '"That\'s it, me too" for ticket 12.' if settled else '"Not the same" for ticket 12: different.'
    notes.append(f"<note>The person pressed {other}</note>")
    chat.say(*notes, button)
    made = [("create_ticket", {"title": PRINTER, "description": PRINTER})]
    assert chat.calls[1:] == ([] if settled else made)


def test_pressed_yes_is_not_commented_twice() -> None:
    chat = Chat(find_similar_tickets=FOUND)
    chat.say(PRINTER)
    note = '<note>The person pressed "That\'s it, me too" for ticket 12. A comment was added to it.</note>'
    assert "#12" in chat.say(note)
    assert len(chat.calls) == 1


def test_long_problem_gets_a_short_title_and_keeps_every_word() -> None:
    problem = "Der Drucker druckt nicht. " * 200
    chat = Chat(find_similar_tickets=NOTHING, create_ticket=created())
    chat.say(problem)
    assert len(chat.calls[1][1]["title"]) <= 80
    assert chat.calls[1][1]["description"] == problem.strip()


@pytest.mark.parametrize("words", ["assign ", "zeig ", "x: ", "#1 ", "was "])
def test_a_very_long_message_is_read_quickly(words: str) -> None:
    started = time.perf_counter()
    read_wish(words * 30_000, asked=True)
    assert time.perf_counter() - started < 2


@given(st.text(min_size=1), st.booleans())
def test_any_words_can_be_read(words: str, asked: bool) -> None:
    assert read_wish(words, asked=asked).intent in Intent
    assert isinstance(is_german([words]), bool)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=1, max_size=4))
def test_any_conversation_comes_to_an_end(texts: list[str]) -> None:
    chat = Chat(
        find_similar_tickets=FOUND,
        create_ticket=created(),
        list_tickets={"total": 0, "shown": 0, "tickets": []},
        get_ticket={"ticket": {"id": 1}},
        update_ticket={"ticket_id": 1, "changes": []},
        add_comment={"ticket_id": 1, "comment_id": 1},
    )
    for text in texts:
        assert chat.say(text).strip()


def test_the_story_through_the_whole_product(
    ask: Ask, claude: ScriptedClaude, alice: User, index: Callable[[], None]
) -> None:
    """A German problem brings up its English ticket; "no" makes a new one, which English words then find."""
    claude.answer_with(lambda request: respond(request.body))
    known: Any = TicketFactory(title="Printout fails on second floor", reporter=alice)
    index()
    assert f"#{known.pk}" in ask(PRINTER)[0].answer
    turn, _ = ask("nein, das ist ein anderes Problem")
    new = Ticket.objects.get(title=PRINTER)
    assert f"#{new.pk}" in turn.answer
    assert (new.reporter, new.source, new.duplicate_check) == (alice, "chat", "searched")
    index()
    assert f"#{new.pk}" in ask("The printer on the second floor is not responding")[0].answer
    ask(f"yes, #{new.pk}")
    assert new.thread()[0].body == "I have this too: The printer on the second floor is not responding"
    assert Ticket.objects.count() == 2


@pytest.fixture
def process() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`manage.py rehearsal_model` with a database that cannot be reached, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "manage.py", "rehearsal_model", "--port", str(port), "--delay", "0"]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    }
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert "not Claude" in running.stdout.readline()
        _wait_for(port)
        yield running, f"http://127.0.0.1:{port}"
        running.kill()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the rehearsal model does not listen")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_process_answers_the_sdk_and_stops_on_a_signal(
    process: tuple[subprocess.Popen[str], str], number: signal.Signals
) -> None:
    running, address = process
    client = Anthropic(base_url=address, api_key="rehearsal", max_retries=0)
    tools: Any = DEFINITIONS
    messages: Any = [{"role": "user", "content": PRINTER}]
    with client.messages.stream(
        model="claude-sonnet-5-5", max_tokens=500, tools=tools, messages=messages
    ) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    assert message.content[-1].to_dict()["input"] == {"query": PRINTER}
    assert message.usage.output_tokens > 0
    running.send_signal(number)
    assert running.wait(timeout=10) == 0


@pytest.mark.slow
def test_busy_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "manage.py", "rehearsal_model", "--port", str(port)]
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        root = Path(__file__).parents[2]
        result = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert result.returncode == 1
    assert re.search(
        rf"Cannot listen on 127\.0\.0\.1:{port} .*--port or REHEARSAL_PORT\.$", result.stderr.strip()
    )
