"""Duplicates beside the form of a new ticket, and once when it is saved."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from retrieval.models import SearchLog, SearchProfile
from retrieval.results import SearchOutcome
from retrieval.search import find_similar
from retrieval.triage import entry as entry_module
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import Fault
from tickets.models import Ticket

pytestmark = pytest.mark.django_db
ADD = "/admin/tickets/ticket/add/"
SUGGEST = "/admin/tickets/ticket/add/similar/"
DRUCKER = {"title": "Drucker im 2. Stock druckt nicht", "description": "Es kommt nichts heraus."}


@pytest.fixture
def agent() -> User:
    return UserFactory(agent=True)


@pytest.fixture
def alice(client: Client, agent: User) -> Client:
    client.force_login(agent)
    return client


@pytest.fixture
def known() -> Ticket:
    SearchProfile.objects.create(
        model="use-multilingual-3:512", floor=0.35, likely=0.5, calibrated_at=timezone.now()
    )
    ticket = TicketFactory(title="Printout fails on second floor", description="Nothing comes out.")
    call_command("embed_worker", "--once", verbosity=0)
    return ticket


def entry(agent: User, **given: Any) -> dict[str, Any]:
    return {"reporter": agent.pk, "priority": "normal", "category": "", "assignee": "", **DRUCKER, **given}


def note_in(html: str) -> str:
    found = re.search(r'name="duplicate_note" value="([^"]+)"', html)
    assert found, "no note"
    return found[1]


def created() -> list[Ticket]:
    return list(Ticket.objects.filter(title__startswith="Drucker").order_by("pk"))


def test_saving_asks_once_and_shows_what_is_known(alice: Client, agent: User, known: Ticket) -> None:
    html = alice.post(ADD, entry(agent)).content.decode()
    assert "Nothing has been saved yet: 1 ticket looks like the same problem" in html
    assert known.title in html
    assert created() == []
    assert DRUCKER["description"] in html
    response = alice.post(ADD, entry(agent, duplicate_note=note_in(html)))
    assert response.status_code == 302
    assert [ticket.duplicate_check for ticket in created()] == ["searched"]


def test_the_second_save_goes_through_even_with_another_text(
    alice: Client, agent: User, known: Ticket
) -> None:
    note = note_in(alice.post(ADD, entry(agent)).content.decode())
    changed = entry(agent, duplicate_note=note, description="Nur die rechte Lampe blinkt.")
    assert alice.post(ADD, changed).status_code == 302


def test_without_likely_duplicates_it_is_saved_at_once(alice: Client, agent: User, known: Ticket) -> None:
    given = entry(agent, title="Drucker: Wie beantrage ich einen Parkausweis?", description="")
    assert alice.post(ADD, given).status_code == 302
    assert [ticket.duplicate_check for ticket in created()] == ["searched"]


def test_what_was_shown_while_typing_is_not_asked_again(alice: Client, agent: User, known: Ticket) -> None:
    html = alice.post(SUGGEST, DRUCKER).content.decode()
    assert known.title in html
    assert "Likely the same" in html
    searches = SearchLog.objects.count()
    assert alice.post(ADD, entry(agent, duplicate_note=note_in(html))).status_code == 302
    assert SearchLog.objects.count() == searches
    assert [ticket.duplicate_check for ticket in created()] == ["searched"]


def test_a_note_about_another_text_does_not_count(alice: Client, agent: User, known: Ticket) -> None:
    html = alice.post(SUGGEST, {"title": "Wo bekomme ich einen Parkausweis?"}).content.decode()
    assert alice.post(ADD, entry(agent, duplicate_note=note_in(html))).status_code == 200
    assert created() == []


def test_a_forged_note_does_not_count(alice: Client, agent: User, known: Ticket) -> None:
    assert alice.post(ADD, entry(agent, duplicate_note='{"asked": true}')).status_code == 200
    assert created() == []


def test_switched_off_search_fails_nothing(alice: Client, agent: User, known: Ticket, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    html = alice.post(SUGGEST, DRUCKER).content.decode()
    assert "You can save all the same." in html
    assert alice.post(ADD, entry(agent)).status_code == 302
    assert [ticket.duplicate_check for ticket in created()] == ["unavailable"]


def test_a_provider_that_is_down_fails_nothing(alice: Client, agent: User, voyage: Any) -> None:
    TicketFactory(title="Printout fails on second floor")
    call_command("embed_worker", "--once", verbosity=0)
    voyage.rules.append(lambda texts: Fault(status=500))
    assert alice.post(ADD, entry(agent)).status_code == 302
    assert [ticket.duplicate_check for ticket in created()] == ["unavailable"]


def test_other_errors_come_first(alice: Client, agent: User, known: Ticket) -> None:
    html = alice.post(ADD, entry(agent, title=" ")).content.decode()
    assert "Nothing has been saved yet" not in html
    assert not SearchLog.objects.exists()


def test_editing_asks_nothing(alice: Client, agent: User, known: Ticket) -> None:
    other = TicketFactory(title="Wrong title", reporter=agent)
    given = entry(agent, status="new", resolution="", comment="", seen_version=1)
    assert alice.post(f"/admin/tickets/ticket/{other.pk}/change/", given).status_code == 302
    other.refresh_from_db()
    assert (other.title, other.duplicate_check) == (DRUCKER["title"], "not_needed")


@pytest.mark.parametrize("text", ["", "   ", "Hallo"])
def test_too_little_to_search_for(alice: Client, text: str) -> None:
    html = alice.post(SUGGEST, {"title": text}).content.decode()
    assert "While you type" in html
    assert not SearchLog.objects.exists()


def test_html_is_text(alice: Client, known: Ticket) -> None:
    Ticket.objects.filter(pk=known.pk).update(title="<img src=x> Printout fails on second floor")
    html = alice.post(SUGGEST, DRUCKER).content.decode()
    assert "<img" not in html


def test_only_for_those_who_may_create(client: Client) -> None:
    assert client.post(SUGGEST, DRUCKER).status_code == 302
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket"]))
    assert client.post(SUGGEST, DRUCKER).status_code == 403


def test_who_may_not_see_tickets_sees_none(client: Client, known: Ticket) -> None:
    client.force_login(UserFactory(is_staff=True, permissions=["add_ticket"]))
    assert known.title not in client.post(SUGGEST, DRUCKER).content.decode()


def test_only_post(alice: Client) -> None:
    assert alice.get(SUGGEST).status_code == 405


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_held_while_a_save_searches(
    alice: Client, agent: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = []

    def watched(*args: Any, **options: Any) -> SearchOutcome:
        inside.append(connection.in_atomic_block)
        return find_similar(*args, **options)

    monkeypatch.setattr(entry_module, "find_similar", watched)
    alice.post(ADD, entry(agent))
    assert inside == [False]
    assert created()


def test_a_search_leaves_the_commit_of_a_larger_transaction_as_it_is(agent: User, known: Ticket) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = on")  # the worker that embedded was in this one, too
        find_similar("Drucker druckt nicht", user=agent)
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
