"""Every page for everybody: axe-core finds nothing serious, and a narrow screen needs no sideways scroll."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page

from assistant.models import Conversation, Message, Turn
from retrieval.models import DuplicateCandidate
from tests.browser.conftest import Rehearsal
from tests.factories import TicketFactory
from tickets.models import Ticket

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]  # many pages a test

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js").read_text()
RUN = """async () => (await axe.run(document, {preload: false, resultTypes: ["violations"]})).violations
    .filter(found => ["serious", "critical"].includes(found.impact))
    .map(found => `${found.id}: ${found.nodes.map(node => node.target.join(" ") + " — "
        + node.any.concat(node.all).map(check => check.message).join("; ")).join(" | ")}`)"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def pages(alice: User, tickets: dict[str, Ticket], embed: Callable[[], None]) -> dict[str, str]:
    """One address of every kind, with something to see on each."""
    printer, vpn = tickets["printer"], tickets["vpn"]
    embed()
    alice.user_permissions.add(*Permission.objects.filter(codename__in=["view_turn", "delete_ticket"]))
    printer.change(
        by=alice, via="admin", status="resolved", priority="urgent", resolution="Cable plugged in."
    )
    vpn.add_comment(by=alice, body="Looking at it", internal=True, via="admin")
    vpn.change(by=alice, via="admin", description="a long log line\n" * 5000)
    again = TicketFactory(title="VPN drops again", reporter=alice)
    DuplicateCandidate.objects.create(ticket=again, candidate=vpn, score=0.9, similarity=0.9, model="m")
    chat = Conversation.objects.create(user=alice, title="Printer")
    turn = Turn.objects.create(
        conversation=chat, status="done", question="Hi", answer="Hello.", first_token_ms=300, total_ms=900,
        tokens_in=10, tokens_out=3, finished_at=timezone.now(), model="claude-sonnet-5-5",
    )  # fmt: skip
    for role, words in (("user", "Hi"), ("assistant", "Hello.")):
        content = [{"type": "text", "text": words}]
        Message.objects.create(
            conversation=chat, turn=turn, role=role, content=content, from_person=role == "user"
        )
    return {
        "chat": f"/chat/{chat.pk}/",
        "welcome": "/chat/",
        "search": "/search/?q=printer+does+not+react",
        "overview": "/admin/",
        "list": "/admin/tickets/ticket/",
        "found": "/admin/tickets/ticket/?q=printer&view=open&created=2026-12&meaning=1",
        "ticket": f"/admin/tickets/ticket/{vpn.pk}/change/",
        "new ticket": "/admin/tickets/ticket/add/",
        "merge": f"/admin/tickets/ticket/{again.pk}/merge/?target={vpn.pk}",
        "inbox": "/admin/tickets/ticket/duplicates/",
        "statistics": "/admin/assistant/turn/statistics/",
        "turns": "/admin/assistant/turn/",
    }


@pytest.fixture
def context(
    browser: Browser, asgi_server: str, request: pytest.FixtureRequest, alice: User, rehearsal: Rehearsal
) -> Iterator[BrowserContext]:
    """Logged in, in the language and the theme of the test."""
    language, theme = request.param
    context = browser.new_context(base_url=asgi_server, locale=language, color_scheme=theme)
    yield context
    context.close()


def log_in(context: BrowserContext, address: str, user: User) -> None:
    client = Client()
    client.force_login(user)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": address}])


@pytest.mark.parametrize(
    "context",
    [(language, theme) for language in ("de-DE", "en-GB") for theme in ("light", "dark")],
    indirect=True,
    ids=lambda each: "-".join(each),
)
def test_nothing_serious_on_any_page(
    context: BrowserContext, asgi_server: str, alice: User, pages: dict[str, str]
) -> None:
    page = context.new_page()
    problems = _problems(page, {"login": "/login/"})
    log_in(context, asgi_server, alice)
    problems |= _problems(page, pages)
    assert not problems, "\n".join(f"{name}: {found}" for name, found in problems.items())


def _problems(page: Page, addresses: dict[str, str]) -> dict[str, Any]:
    found = {}
    for name, address in addresses.items():
        page.set_viewport_size({"width": 1280, "height": 900})
        answer = page.goto(address, wait_until="networkidle")
        assert answer is not None
        assert answer.status == 200, address
        page.evaluate(AXE)
        violations = page.evaluate(RUN)
        page.set_viewport_size({"width": 390, "height": 800})
        if (wider := page.evaluate(OVERFLOW)) > 0:
            violations.append(f"{wider} pixels wider than a narrow screen")
        if violations:
            found[name] = violations
    return found
