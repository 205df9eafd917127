"""What the log says about a turn, and what it must never say."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from helpdesk.logs import logging_config
from tests.assistant.conftest import Ask
from tests.factories import TicketFactory
from tests.fakes.claude import ScriptedClaude
from tests.fakes.claude import ToolCall as Use

MESSAGE = "the sesame in the drawer opens the vault"
KEY = "sk-ant-very-secret-key"


class Lines(logging.Handler):
    """Keeps what would be written, formatted as in production."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        formatter = logging_config(as_json=True, level="INFO")["formatters"]["line"]
        self.setFormatter(formatter.pop("()")(**formatter))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler.lines
    root.removeHandler(handler)
    root.setLevel(level)


def test_neither_messages_nor_secrets_are_logged(
    ask: Ask, claude: ScriptedClaude, alice: User, lines: list[str], settings: Any, client: Client
) -> None:
    settings.ANTHROPIC_API_KEY = KEY
    settings.METRICS_TOKEN = "metrics-secret"
    TicketFactory(title=MESSAGE, description=MESSAGE, reporter=alice)
    claude.reply(Use("find_similar_tickets", {"query": MESSAGE})).reply(f"You said: {MESSAGE}")
    ask(MESSAGE)
    claude.reply(Use("update_ticket", {"ticket_id": 0, "title": MESSAGE})).reply("No.")
    ask(MESSAGE)
    client.post("/login/", {"username": MESSAGE, "password": "hunter2-hunter2"})
    client.force_login(alice)
    client.get("/search/", {"q": MESSAGE})
    client.get("/metrics", headers={"Authorization": "Bearer metrics-secret"})
    everything = "\n".join(lines)
    assert '"path": "/search/"' in everything
    for secret in ("sesame", KEY, "hunter2", "metrics-secret", client.cookies["sessionid"].value):
        assert secret not in everything


def test_lines_about_a_turn_name_it(
    ask: Ask, claude: ScriptedClaude, alice: User, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from assistant import loop

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(loop, "ending_of", broken)
    claude.reply("Hello.")
    turn, _events = ask("Hello")
    assert turn.status == "failed"
    assert any(f'"turn_id": {turn.pk}' in line and "broken on purpose" in line for line in lines)


def test_a_request_about_a_ticket_names_it(alice: User, client: Client, lines: list[str]) -> None:
    ticket = TicketFactory(title="Printer jams", reporter=alice)
    client.force_login(alice)
    for address in (f"/admin/tickets/ticket/{ticket.pk}/change/", f"/api/v1/tickets/{ticket.pk}/"):
        lines.clear()
        assert client.get(address).status_code == 200
        request = next(line for line in lines if '"event": "request"' in line)
        assert f'"ticket_id": {ticket.pk},' in request
        assert '"request_id"' in request
