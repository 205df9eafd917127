"""Pages of the admin as they lie on the screen: nothing covers anything, nothing is too pale to see."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from retrieval.models import DuplicateCandidate
from tests.factories import TicketFactory

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
TICKETS = "/admin/tickets/ticket/"
Open = Callable[..., Page]


@pytest.fixture
def window(browser: Any, asgi_server: str, alice: User, client: Client) -> Iterator[Open]:
    """Opens a window of these properties in which Alice is logged in."""
    client.force_login(alice)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": asgi_server}
    contexts = []

    def opened(width: int, **properties: Any) -> Page:
        size = {"width": width, "height": 844}
        context = browser.new_context(base_url=asgi_server, locale="en-GB", viewport=size, **properties)
        context.add_cookies([session])
        contexts.append(context)
        page: Page = context.new_page()
        return page

    yield opened
    for context in contexts:
        context.close()


def edges(page: Page, selector: str) -> tuple[float, float]:
    """Top and bottom of the first such element."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["y"], box["y"] + box["height"]


def test_the_tools_of_a_ticket_stand_below_its_title(window: Open) -> None:
    title = "The label printer prints nothing but empty labels and " + "x" * 140
    page = window(1280)
    page.goto(f"{TICKETS}{TicketFactory(title=title).pk}/change/")
    assert edges(page, ".object-tools a")[0] >= edges(page, "#content > h2")[1]
    assert edges(page, ".ticket-facts")[0] >= edges(page, ".object-tools a")[1]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_the_plus_of_the_button_is_written_in_its_colour(window: Open) -> None:
    page = window(1280)
    page.goto(TICKETS)
    style = "link => [getComputedStyle(link).backgroundImage, getComputedStyle(link, '::after').content]"
    picture, sign = page.locator("a.addlink").evaluate(style)
    assert picture == "none"
    assert "+" in sign


def test_on_a_telephone_no_keys_are_named_and_the_password_can_be_changed(window: Open) -> None:
    newer, older = TicketFactory(title="Printer"), TicketFactory(title="Printer")
    DuplicateCandidate.objects.create(ticket=newer, candidate=older, score=1.0, model="m")
    page = window(390, is_mobile=True, has_touch=True)
    page.goto(f"{TICKETS}duplicates/")
    expect(page.get_by_role("button", name="Same")).to_be_visible()
    expect(page.locator("kbd").first).to_be_hidden()
    expect(page.get_by_role("link", name="Change password")).to_be_visible()
    assert edges(page, ".password-link")[0] < edges(page, "#site-name")[1]  # in the same line
    desk = window(1280)
    desk.goto(f"{TICKETS}duplicates/")
    expect(desk.locator("kbd").first).to_be_visible()
