"""The product's story in a real browser, from the login to the second ticket."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.conftest import Rehearsal
from tickets.models import Ticket

pytestmark = pytest.mark.django_db(transaction=True)

Step = Callable[[], None]


def say(page: Page, text: str) -> None:
    """Type a message, send it with Enter, and wait until the assistant has finished."""
    turns = page.locator("article.turn").count()
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("article.turn")).to_have_count(turns + 1)
    expect(page.locator("article.turn").last).to_have_attribute("data-status", "done", timeout=30_000)


def test_from_login_to_second_ticket(
    page: Page, rehearsal: Rehearsal, tickets: dict[str, Ticket], alice: User, embed: Step, log_in: Step
) -> None:
    embed()
    log_in()
    expect(page.get_by_text("Rehearsal model, not Claude.")).to_be_visible()

    # A problem in German brings up the English ticket that means the same, and no second ticket.
    say(page, "Drucker im zweiten Stock reagiert nicht")
    printer = tickets["printer"]
    card = page.locator(f'.card[data-ticket="{printer.pk}"]')
    expect(card).to_contain_text("Printout fails on second floor")
    expect(card).to_contain_text("EN")
    expect(card.get_by_role("link", name=f"#{printer.pk}")).to_have_attribute(
        "href", f"/tickets/{printer.pk}/"
    )
    expect(page.locator(".step").first).to_contain_text("Drucker im zweiten Stock reagiert nicht")
    assert Ticket.objects.count() == len(tickets)

    # The person says that it is something else: only now is there a new ticket.
    say(page, "nein, das ist ein anderes Problem")
    assert Ticket.objects.count() == len(tickets) + 1
    created = Ticket.objects.latest("pk")
    assert (created.reporter, created.source) == (alice, Ticket.Source.CHAT)
    expect(page.locator("article.turn").last).to_contain_text(f"#{created.pk}")

    # Once the worker has seen it, an English paraphrase finds it.
    embed()
    page.goto("/search/?q=the printer upstairs does not respond")
    expect(page.locator(f'.card[data-ticket="{created.pk}"]')).to_contain_text(created.title)

    # The conversation is still there, and it is in the list.
    page.goto("/chat/")
    page.get_by_role("link", name="Drucker im zweiten Stock reagiert nicht").click()
    expect(page.locator("article.turn")).to_have_count(2)


def test_thats_it_adds_my_report_to_the_ticket(
    page: Page, rehearsal: Rehearsal, tickets: dict[str, Ticket], embed: Step, log_in: Step
) -> None:
    embed()
    log_in()
    say(page, "Drucker im zweiten Stock reagiert nicht")
    card = page.locator(f'.card[data-ticket="{tickets["printer"].pk}"]')
    card.get_by_role("button", name="That's it, me too").click()
    expect(card).to_contain_text("a comment was added to the ticket")
    assert tickets["printer"].comments.count() == 1
    assert Ticket.objects.count() == len(tickets)


def test_not_the_same_goes_on_with_a_new_ticket(
    page: Page, rehearsal: Rehearsal, tickets: dict[str, Ticket], embed: Step, log_in: Step
) -> None:
    embed()
    log_in()
    say(page, "Drucker im zweiten Stock reagiert nicht")
    buttons = page.get_by_role("button", name="Not the same")
    while page.locator("article.turn").count() == 1 and buttons.count():
        left = buttons.count()
        buttons.first.click()
        expect(buttons).to_have_count(left - 1)
    expect(page.locator("article.turn")).to_have_count(2)
    expect(page.locator("article.turn").last).to_have_attribute("data-status", "done", timeout=30_000)
    assert Ticket.objects.count() == len(tickets) + 1


def test_html_in_a_ticket_is_text(
    page: Page, rehearsal: Rehearsal, alice: User, embed: Step, log_in: Step
) -> None:
    from tests.factories import TicketFactory

    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script> printer broken'
    TicketFactory(title=evil, description=f"{evil} on floor two", reporter=alice)
    embed()
    log_in()
    say(page, f"The printer is broken {evil}")
    expect(page.locator(".card-title").first).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0
    page.reload()
    expect(page.locator(".card-title").first).to_contain_text("<script>")
    page.goto("/search/?q=printer broken <b>x</b>")
    expect(page.locator(".card-title").first).to_contain_text("<img src=x")
    assert page.locator("main img, main b").count() == 0


def test_german_by_the_switch(page: Page, rehearsal: Rehearsal, alice: User, log_in: Step) -> None:
    log_in()
    page.get_by_role("button", name="DE", exact=True).click()
    expect(page.get_by_role("heading", name="Was funktioniert nicht?")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.get_by_role("button", name="EN", exact=True).click()
    expect(page.get_by_role("heading", name="What is not working?")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screen_has_no_sideways_scroll(
    page: Page, rehearsal: Rehearsal, tickets: dict[str, Ticket], embed: Step, log_in: Step, scheme: Any
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    embed()
    log_in()
    say(page, "Drucker im zweiten Stock reagiert nicht " + "x" * 300)
    assert _overflow(page) == 0
    for address in ("/chat/", "/search/?q=printer", "/search/", "/chat/999999/"):
        page.goto(address)
        assert _overflow(page) == 0, address
    page.script_errors.clear()  # type: ignore[attr-defined]  # the browser itself reports the 404


def _overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_every_page_keeps_the_strict_policy(
    page: Page, rehearsal: Rehearsal, tickets: dict[str, Ticket], log_in: Step
) -> None:
    """The `page` fixture fails the test for any script error or refused resource."""
    page.goto("/login/")
    log_in()
    say(page, "hello")
    chat = page.url
    for address in (
        chat,
        "/chat/",
        "/search/",
        "/search/?q=printer",
        "/admin/",
        f"/tickets/{tickets['vpn'].pk}/",
    ):
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy, address
        assert "unsafe" not in policy, address
