"""Agents at work with keyboard and mouse: the inbox by single keys, the panel, the form of a new ticket."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from retrieval.models import DuplicateCandidate, SearchProfile, Verdict
from tests.factories import TicketFactory
from tickets.models import Ticket

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
INBOX = "/admin/tickets/ticket/duplicates/"


@pytest.fixture
def desk(page: Page, alice: User, tickets: dict[str, Ticket], embed: Any, log_in: Any) -> Page:
    """Logged in, with two pairs in the inbox."""
    SearchProfile.objects.create(
        model="use-multilingual-3:512", floor=0.5, likely=0.55, calibrated_at=timezone.now()
    )
    TicketFactory(title="Drucker im 2. Stock druckt nicht", description="Beim Drucker an der Küche.")
    TicketFactory(title="VPN bricht alle paar Minuten ab", description="Der Tunnel trennt sich ständig.")
    embed()
    assert DuplicateCandidate.objects.count() == 2
    log_in()
    return page


def shown(page: Page) -> int:
    """The candidate that the page shows."""
    action = page.locator(".pair-actions").get_attribute("action") or ""
    return int(re.findall(r"\d+", action)[-1])


def press(page: Page, key: str) -> None:
    with page.expect_navigation():
        page.keyboard.press(key)


def test_the_inbox_by_keys_alone(desk: Page) -> None:
    desk.goto(INBOX)
    first = shown(desk)
    press(desk, "j")
    second = shown(desk)
    assert second != first
    press(desk, "k")
    assert shown(desk) == first
    press(desk, "l")
    assert shown(desk) == second
    press(desk, "d")
    assert shown(desk) == first
    press(desk, "s")
    expect(desk.get_by_role("heading", name="Nothing to decide.")).to_be_visible()
    assert sorted(Verdict.objects.values_list("judgement", flat=True)) == ["different", "same"]
    assert Ticket.objects.exclude(duplicate_of=None).count() == 1
    press(desk, "u")
    assert shown(desk) == first
    assert not Ticket.objects.exclude(duplicate_of=None).exists()
    press(desk, "r")
    assert sorted(Verdict.objects.values_list("judgement", flat=True)) == ["different", "related"]


def test_keys_with_a_modifier_are_the_browsers(desk: Page) -> None:
    desk.goto(INBOX)
    desk.keyboard.press("Control+d")
    desk.keyboard.press("Alt+s")
    desk.wait_for_timeout(200)
    assert not Verdict.objects.exists()


def test_the_panel_loads_and_judges_without_leaving_the_page(desk: Page, tickets: dict[str, Ticket]) -> None:
    desk.goto(f"/admin/tickets/ticket/{tickets['printer'].pk}/change/")
    panel = desk.get_by_role("complementary", name="Similar tickets")
    expect(panel.get_by_text("Drucker im 2. Stock druckt nicht")).to_be_visible()
    desk.get_by_label("Title").fill("Half typed")
    panel.get_by_role("button", name=re.compile("Related")).first.click()
    expect(panel.get_by_text("are related now")).to_be_visible()
    expect(panel.get_by_role("heading", name="Related tickets")).to_be_visible()
    expect(desk.get_by_label("Title")).to_have_value("Half typed")
    panel.get_by_role("button", name=re.compile("Remove link")).click()
    expect(panel.get_by_text("Undone.")).to_be_visible()


def test_duplicates_appear_while_typing_and_nothing_is_asked_again(desk: Page) -> None:
    desk.goto("/admin/tickets/ticket/add/")
    aside = desk.get_by_role("complementary", name="Similar tickets")
    desk.get_by_label("Title").press_sequentially(
        "Nothing comes out of the printer near the kitchen", delay=2
    )
    card = aside.get_by_role("link", name="Printout fails on second floor")
    expect(card).to_be_visible()
    card.focus()
    expect(card).to_be_focused()
    desk.get_by_role("button", name="Save", exact=True).click()
    desk.wait_for_url("**/admin/tickets/ticket/")
    created = Ticket.objects.latest("pk")
    assert (created.title, created.duplicate_check) == (
        "Nothing comes out of the printer near the kitchen",
        "searched",
    )


def test_fast_typing_asks_for_the_last_text_only(desk: Page) -> None:
    asked: list[str] = []
    desk.on("request", lambda sent: asked.append(sent.url) if "/add/similar/" in sent.url else None)
    desk.goto("/admin/tickets/ticket/add/")
    desk.get_by_label("Title").press_sequentially("The VPN drops all the time today", delay=15)
    aside = desk.get_by_role("complementary", name="Similar tickets")
    expect(aside.get_by_role("link", name="VPN disconnects every few minutes")).to_be_visible()
    assert len(asked) <= 3


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("path", ["duplicates/", "incidents/", "add/"])
def test_nothing_is_wider_than_the_screen(desk: Page, width: int, path: str) -> None:
    desk.set_viewport_size({"width": width, "height": 844})
    desk.goto(f"/admin/tickets/ticket/{path}")
    assert desk.evaluate("document.documentElement.scrollWidth") <= width
