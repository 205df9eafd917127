"""The whole product for a browser: the site, the rehearsal model over HTTP, the local model of embeddings."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import User
from django.core.management import call_command
from playwright.sync_api import expect

from assistant.rehearsal.model import application
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

# Browsers are slow on a machine that also runs everything else.
expect.set_options(timeout=15_000)

PASSWORD = "correct horse battery"


class Rehearsal:
    """The rehearsal model on a loopback port; `delay` (seconds a token) can be set for the next start."""

    def __init__(self, delay: float) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        config = uvicorn.Config(
            application(delay), log_config=None, lifespan="off", ws="none", interface="asgi3"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True
        )

    def __enter__(self) -> "Rehearsal":
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *failure: object) -> None:
        self.server.force_exit = self.server.should_exit = True
        self.thread.join(5)
        self.listener.close()


@pytest.fixture
def rehearsal(settings: Any) -> Iterator[Rehearsal]:
    settings.ASSISTANT_BACKEND = "rehearsal"
    with Rehearsal(delay=0.001) as model:
        settings.ANTHROPIC_BASE_URL = model.address
        yield model


@pytest.fixture
def slow_rehearsal(settings: Any) -> Iterator[Rehearsal]:
    """Slow enough that a person can press a button before the answer ends."""
    settings.ASSISTANT_BACKEND = "rehearsal"
    with Rehearsal(delay=0.1) as model:
        settings.ANTHROPIC_BASE_URL = model.address
        yield model


@pytest.fixture
def alice(transactional_db: None) -> User:
    return UserFactory(username="alice", password=PASSWORD, agent=True)


@pytest.fixture
def tickets(alice: User) -> dict[str, Ticket]:
    """A small helpdesk: the ticket that is meant, and others that are not."""
    rows = {
        "printer": (
            "Printout fails on second floor",
            "Nothing comes out of the printer near the kitchen on floor 2.",
        ),
        "vpn": (
            "VPN disconnects every few minutes",
            "The tunnel drops and reconnects, worst in the afternoon.",
        ),
        "password": ("Passwort abgelaufen", "Die Anmeldung am Rechner klappt seit dem Urlaub nicht mehr."),
        "door": ("Badge does not open the warehouse door", "The reader blinks red for my card since Monday."),
        "mail": ("Outlook zeigt keine neuen E-Mails", "Seit heute Morgen kommt nichts mehr an."),
    }
    return {
        name: TicketFactory(title=title, description=description, reporter=alice)
        for name, (title, description) in rows.items()
    }


@pytest.fixture
def embed() -> Callable[[], None]:
    """Let the real worker give every ticket its vector."""

    def embed() -> None:
        call_command("embed_worker", "--once", verbosity=0)

    return embed


@pytest.fixture
def log_in(page: Any, alice: User) -> Callable[[], None]:
    def log_in() -> None:
        page.goto("/")
        page.get_by_label("User name").fill("alice")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/chat/")

    return log_in
