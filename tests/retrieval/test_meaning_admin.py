"""The list of tickets searched by meaning, and its view of possible duplicates."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from retrieval.models import DuplicateCandidate, SearchLog
from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.django_db
LIST = "/admin/tickets/ticket/"
QUESTION = {"q": "Drucker reagiert nicht", "meaning": "1"}


@pytest.fixture
def alice(db: None, client: Client) -> User:
    person = UserFactory(username="alice", agent=True)
    client.force_login(person)
    return person


def listed(response: Any) -> list[str]:
    return [ticket.title for ticket in response.context["cl"].result_list]


@pytest.mark.django_db(transaction=True)
def test_the_nearest_first_in_any_language(alice: User, client: Client) -> None:
    for title in ("Printout fails on second floor", "Badge does not open the door", "The printer is dead"):
        TicketFactory(title=title, description="since this morning")
    call_command("embed_worker", "--once", verbosity=0)
    assert listed(client.get(LIST, {"q": QUESTION["q"]})) == []
    response = client.get(LIST, QUESTION)
    found = listed(response)
    assert {"Printout fails on second floor", "The printer is dead"} <= set(found[:2])
    assertContains(response, 'name="meaning" value="1" checked')
    assertNotContains(response, "by words only")
    assert SearchLog.objects.count() == 1
    assert listed(client.get(LIST, {**QUESTION, "status__exact": "closed"})) == []
    assert sorted(listed(client.get(LIST, {**QUESTION, "o": "1"}))) == sorted(found)


def test_switched_off_it_says_so_and_searches_words(alice: User, client: Client, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    TicketFactory(title="Drucker reagiert nicht")
    response = client.get(LIST, QUESTION)
    assert listed(response) == ["Drucker reagiert nicht"]
    assertContains(response, "Searched by words only, not by meaning")
    assertContains(response, "sorted descending")
    assertNotContains(client.get(LIST, {"q": "Parkplatz"}), "Search by meaning")


def test_without_words_the_switch_does_nothing(alice: User, client: Client) -> None:
    TicketFactory(title="One")
    assert listed(client.get(LIST, {"q": " ", "meaning": "1"})) == ["One"]
    assert not SearchLog.objects.exists()


def test_possible_duplicates(alice: User, client: Client) -> None:
    older, newer, solved = (TicketFactory(title=title) for title in ("older", "newer", "solved"))
    for ticket in (newer, solved):
        DuplicateCandidate.objects.create(ticket=ticket, candidate=older, score=1.0, model="m")
    solved.change(by=alice, via="admin", status="resolved")
    assertContains(client.get(LIST), "?view=duplicates")
    assert listed(client.get(LIST, {"view": "duplicates"})) == ["newer"]
    DuplicateCandidate.objects.update(state="decided")
    assert listed(client.get(LIST, {"view": "duplicates"})) == []


def test_the_view_and_the_inbox_are_called_what_they_are(alice: User, client: Client) -> None:
    page = client.get(LIST)
    assertContains(page, ">Maybe duplicates</a>")
    assertContains(page, '<a href="/admin/tickets/ticket/duplicates/">Duplicate inbox</a>')
    assertContains(client.get("/admin/tickets/ticket/duplicates/"), "<h1>Duplicate inbox</h1>")


@pytest.mark.django_db(transaction=True)
def test_words_in_vain_lead_to_the_meaning(alice: User, client: Client) -> None:
    TicketFactory(title="Etikettendrucker im Lager druckt nicht")
    words = {"q": "drucker", "status__exact": "new"}
    assertNotContains(client.get(LIST, words), "Search by meaning")  # nothing is indexed yet
    call_command("embed_worker", "--once", verbosity=0)
    response = client.get(LIST, words)
    assert listed(response) == []
    assertContains(response, '<a href="?meaning=1&amp;q=drucker&amp;status__exact=new">Search by meaning</a>')
    found = client.get(LIST, {**words, "meaning": "1"})
    assert listed(found) == ["Etikettendrucker im Lager druckt nicht"]
    assertNotContains(found, "sorted descending")  # the nearest first is the order of no column
    assertContains(client.get(LIST, {**words, "meaning": "1", "o": "-1"}), "sorted descending")
    for query in ({"q": "Lager"}, {**words, "q": "Parkplatz", "meaning": "1"}, {"status__exact": "closed"}):
        assertNotContains(client.get(LIST, query), "Search by meaning")
