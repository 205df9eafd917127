"""The loop under test: the real SDK over real HTTP against ScriptedClaude, on a real database."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from assistant import calls, client, loop
from assistant.events import Event, TurnFinished
from assistant.models import Conversation, Turn
from assistant.services import post_message
from tests.factories import UserFactory
from tests.fakes.claude import ScriptedClaude


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and looks at a turn that somebody else answers need not be slow."""
    monkeypatch.setattr(calls, "RETRY_SECONDS", (0.01, 0.02))
    monkeypatch.setattr(loop, "FOLLOW_SECONDS", 0.05)


@pytest.fixture
def claude(settings: Settings) -> Iterator[ScriptedClaude]:
    with ScriptedClaude() as server:
        settings.ANTHROPIC_BASE_URL = server.base_url
        settings.ASSISTANT_MESSAGES_PER_MINUTE = 0
        yield server


@pytest.fixture
def alice(transactional_db: None) -> User:
    return UserFactory(agent=True, username="alice", first_name="Alice", last_name="Archer")


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return Conversation.objects.create(user=alice)


async def collect(turn_id: int) -> list[Event]:
    """All events of a turn, on a client of its own."""
    try:
        return [event async for event in loop.run_turn(turn_id)]
    finally:
        await client.client().close()


def run(turn: Turn) -> list[Event]:
    events = asyncio.run(collect(turn.pk))
    turn.refresh_from_db()
    return events


def ending(events: list[Event]) -> TurnFinished:
    """The event that ended the turn, always the last one."""
    last = events[-1]
    assert isinstance(last, TurnFinished)
    return last


Ask = Callable[[str], tuple[Turn, list[Event]]]


@pytest.fixture
def ask(conversation: Conversation) -> Ask:
    """Post a message as alice and let it be answered: the turn as stored, and its events."""

    def _ask(text: str) -> tuple[Turn, list[Event]]:
        key = f"key-{conversation.messages.count()}"
        turn = post_message(conversation=conversation, user=conversation.user, text=text, client_key=key).turn
        return turn, run(turn)

    return _ask


@pytest.fixture
def index() -> Callable[[], None]:
    """Give every ticket its vector, as the worker does."""

    def embed() -> None:
        call_command("embed_worker", "--once")

    return embed
