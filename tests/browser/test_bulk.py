"""Changing many tickets in a real browser: the page goes on by itself until all are done."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD
from tickets import bulk
from tickets.models import Ticket

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_goes_on_by_itself(
    page: Page, alice: User, tickets: dict[str, Ticket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2)
    monkeypatch.setattr(bulk.advance, "__defaults__", (0.0,))  # one chunk a step
    page.goto("/login/?next=/admin/tickets/ticket/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.locator("#action-toggle").check()
    page.get_by_label("Action:").select_option("change_many")
    page.get_by_role("button", name="Run").or_(page.get_by_role("button", name="Go", exact=True)).click()
    page.get_by_label("Priority").select_option("high")
    page.get_by_label("Assignee").select_option(str(alice.pk))
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_text(f"{len(tickets)} tickets changed")).to_be_visible()
    expect(page.locator(".run-counts")).to_be_focused()  # the page has stayed the same
    assert Ticket.objects.filter(priority="high", assignee=alice).count() == len(tickets)
