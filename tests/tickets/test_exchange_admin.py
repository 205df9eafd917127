"""The import page of the admin."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.asserts import assertContains

from tests.factories import UserFactory
from tickets import exchange_admin
from tickets.models import Ticket

PAGE = "/admin/tickets/ticket/import/"


@pytest.fixture
def browser(db: Any) -> Client:
    client = Client()
    client.force_login(UserFactory(agent=True, username="alice"))
    return client


def upload(browser: Client, text: str, name: str = "tickets.csv", **fields: Any) -> str:
    answer = browser.post(PAGE, {"file": SimpleUploadedFile(name, text.encode()), **fields})
    assert answer.status_code == 200
    return answer.content.decode()


def test_checks_first_then_imports(browser: Client) -> None:
    text = "Subject,reporter\nPrinter,\n,alice\n"
    page = upload(browser, text, title="Subject", reporter_is_me="on", dry_run="on")
    assert "1 ticket would be created" in page
    assert "1 row rejected" in page
    assert not Ticket.objects.exists()
    page = upload(browser, text, title="Subject", reporter_is_me="on")
    assert "1 ticket created" in page
    assert "1 row rejected" in page
    assert '<td>3</td><td dir="auto">title:' in page
    ticket = Ticket.objects.get()
    assert (ticket.title, ticket.source, ticket.reporter.username) == ("Printer", "import", "alice")


def test_checking_and_importing_are_two_buttons(browser: Client) -> None:
    assertContains(
        browser.get(PAGE),
        """<input type="submit" class="default" name="dry_run" value="Check">
        <input type="submit" value="Import">""",
        html=True,
    )
    assert "1 ticket would be created" in upload(browser, "title,reporter\nx,alice\n", dry_run="Check")
    assert not Ticket.objects.exists()


def test_asks_for_the_file_again_only_if_something_would_be_imported(browser: Client) -> None:
    again = "choose the file again"
    assert again in upload(browser, "title,reporter\nx,alice\n", dry_run="Check")
    assert again not in upload(browser, "title,reporter\nx,nobody\n", dry_run="Check")


def test_names_the_columns_it_knows(browser: Client) -> None:
    page = browser.get(PAGE).content.decode()
    assert "<code>title</code>, <code>titel</code>" in page
    assert "<code>created_at</code>" in page


def test_without_a_column_of_people_i_am_the_reporter(browser: Client) -> None:
    text = "Titel\nTür\n"
    assert "no column for: reporter" in upload(browser, text)
    assert "1 ticket created" in upload(browser, text, reporter_is_me="on")


def test_says_why_a_file_is_refused(browser: Client) -> None:
    assert "let it end in .csv or .jsonl" in upload(browser, "x", name="tickets.xlsx")
    upload(browser, "title,reporter\nx,alice\n")
    page = upload(browser, "title,reporter\nx,alice\n")
    assert "choose to import it again" in page
    assert "--again" not in page
    upload(browser, "title,reporter\nx,alice\n", again="on")
    assert Ticket.objects.count() == 2


def test_large_files_are_for_the_command(browser: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(exchange_admin, "LARGEST_FILE", 10)
    assert "manage.py import_tickets" in upload(browser, "title,reporter\nx,alice\n")
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("right", ["add_ticket", "change_ticket"])
def test_needs_the_rights_to_add_and_to_change(db: Any, right: str) -> None:
    """A file sets status, assignee and resolution."""
    person: User = UserFactory(is_staff=True, permissions=["view_ticket", right])
    client = Client()
    client.force_login(person)
    assert client.get(PAGE).status_code == 403
    assert "import/" not in client.get("/admin/tickets/ticket/").content.decode()


def test_stands_above_the_list(browser: Client) -> None:
    assert PAGE in browser.get("/admin/tickets/ticket/").content.decode()
