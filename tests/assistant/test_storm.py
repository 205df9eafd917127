"""Many turns with faults at random places: nothing is written twice and every conversation lives on.

ScriptedClaude refuses what the real API refuses (an orphaned tool use, wrong thinking, a broken order of
roles), and a refused request fails the test. `STORM_SEEDS=40 pytest -n 2 tests/assistant/test_storm.py` runs
more than a thousand turns.
"""

import os
import random
from collections import Counter

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from assistant import client
from assistant.messages_api.replies import Reply
from assistant.messages_api.validation import MessagesRequest
from assistant.models import Conversation, ToolCall, Turn
from assistant.services import retry_turn, stop_turn
from tests.assistant.conftest import Ask, run
from tests.factories import TicketFactory
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
    Step,
    Text,
    Thinking,
)
from tests.fakes.claude import ToolCall as Use
from tickets.models import Comment, Ticket

ENDINGS = [
    "max_tokens",
    "refusal",
    "pause_turn",
    "model_context_window_exceeded",
    "stop_sequence",
    "moon_phase",
    "",
]


class Weather:
    """A model that does something at random, and a line that breaks at random."""

    def __init__(self, seed: int, tickets: list[int]) -> None:
        self.random = random.Random(seed)
        self.tickets = tickets
        self.number = 0

    def __call__(self, request: MessagesRequest) -> Step:
        blocks = self._blocks(request.body.get("tool_choice") != {"type": "none"})
        ending = self.random.choice(ENDINGS) if self.random.random() < 0.25 else ""
        reply = Reply(tuple(blocks), stop_reason=ending)
        return Step(reply, self._fault() if self.random.random() < 0.25 else None)

    def _blocks(self, may_use_tools: bool) -> list[Text | Thinking | Use]:
        blocks: list[Text | Thinking | Use] = []
        if self.random.random() < 0.4:
            blocks.append(Thinking("hm"))
        if self.random.random() < 0.6:
            blocks.append(Text(self.random.choice(["Well.", " ", "One moment, please.", "See #1."])))
        if may_use_tools and self.random.random() < 0.6:
            blocks += [self._use() for _ in range(self.random.choice([1, 1, 2, 3]))]
        return (
            blocks if any(not isinstance(block, Thinking) for block in blocks) else [*blocks, Text("Done.")]
        )

    def _use(self) -> Use:
        self.number += 1
        ticket = self.random.choice(self.tickets)
        return self.random.choice(
            [
                Use("find_similar_tickets", {"query": "printer"}),
                Use("create_ticket", {"title": f"Created {self.number}", "description": ""}),
                Use("add_comment", {"ticket_id": ticket, "body": f"Comment {self.number}"}),
                Use("update_ticket", {"ticket_id": ticket, "priority": self.random.choice(["low", "high"])}),
                Use("get_ticket", {"ticket_id": ticket}),
                Use("list_tickets", {"status": "unresolved"}),
                Use("no_such_tool", {"x": 1}),
                Use("get_ticket", {"ticket_id": "one"}),
            ]
        )

    def _fault(self) -> Fault:
        after = self.random.randrange(8)
        faults: list[Fault] = [
            HttpError("rate_limit_error"),
            HttpError("overloaded_error"),
            HttpError("api_error"),
            HttpError("authentication_error"),
            ErrorEvent(after),
            Drop(after),
            EndEarly(after + 1),
            Malformed(after),
            RawBody(),
            RawBody(200),
            Hang(after),
        ]
        return self.random.choice(faults)


@pytest.mark.parametrize("seed", range(1, int(os.environ.get("STORM_SEEDS", "2")) + 1))
def test_storm(
    ask: Ask,
    claude: ScriptedClaude,
    alice: User,
    conversation: Conversation,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    settings.ASSISTANT_DAILY_TOKENS_PER_USER = 0
    settings.ASSISTANT_MAX_STEPS = 5
    monkeypatch.setattr(client, "SILENCE_SECONDS", 0.5)
    weather = Weather(seed, [TicketFactory(title=f"T{n}", reporter=alice).pk for n in range(3)])
    claude.answer_with(weather)
    for number in range(25):
        turn, _events = ask(f"Message {number}")
        if (
            turn.is_incomplete
            and weather.random.random() < 0.5
            and turn.error not in ("refusal", "context_full")
        ):
            turn = retry_turn(turn, alice)
            run(turn)
        assert turn.status in ("done", "failed", "interrupted")
        assert stop_turn(turn, alice).status == turn.status
    _check_writes()
    outcomes = Counter(Turn.objects.values_list("status", flat=True))
    assert outcomes["queued"] == outcomes["running"] == 0
    assert outcomes["done"] > 0
    claude.answer_with(lambda request: Step(Reply((Text("I am here."),))))
    turn, _events = ask("Are you still there?")
    assert (turn.status, turn.answer) == ("done", "I am here.")


def _check_writes() -> None:
    """Every ticket and comment belongs to exactly one tool call, and every call that says so has written."""
    titles = Counter(
        Ticket.objects.filter(source="chat", title__startswith="Created").values_list("title", flat=True)
    )
    bodies = Counter(Comment.objects.values_list("body", flat=True))
    assert set(titles.values()) | set(bodies.values()) <= {1}
    written = ToolCall.objects.filter(is_error=False)
    assert written.filter(creates=True).count() == len(titles)
    assert written.filter(name="add_comment").count() == len(bodies)
