"""/search/?q=: the three outcomes in plain words, without a model and without JavaScript."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from helpdesk.turnstile import AT_ONCE
from retrieval.highlight import highlighted, terms_of
from retrieval.models import SearchLog
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import Fault, VoyageServer
from tests.processes import wait_for
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> User:
    return UserFactory(username="alice", agent=True)


@pytest.fixture
def alice(client: Client, agent: User) -> Client:
    client.force_login(agent)
    return client


@pytest.fixture
def search_off(settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"


def test_strangers_are_sent_to_the_login(client: Client) -> None:
    response = client.get("/search/?q=printer")
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=/search/")


def test_people_without_the_ticket_permissions_get_403(client: Client) -> None:
    client.force_login(UserFactory(is_staff=True))
    assert client.get("/search/").status_code == 403


def test_only_get(alice: Client) -> None:
    assert alice.post("/search/", {"q": "printer"}).status_code == 405


def test_without_a_question_there_is_only_the_form(alice: Client) -> None:
    html = alice.get("/search/").content.decode()
    assert 'name="q"' in html
    assert "data-outcome" not in html
    assert not SearchLog.objects.exists()


def test_switched_off_search_says_so_and_shows_what_shares_words(alice: Client, search_off: None) -> None:
    TicketFactory(title="Printer PRN-2F-01 jams", description="Paper stuck since Monday.")
    html = alice.get("/search/", {"q": "PRN-2F-01"}).content.decode()
    assert 'data-outcome="unavailable"' in html
    assert "Could not search by meaning" in html
    assert "EMBEDDING_PROVIDER=local" in html
    assert "share words or identifiers" in html
    assert "<mark>PRN-2F-01</mark>" in html


def test_unavailable_and_empty_is_not_nothing(alice: Client, search_off: None) -> None:
    html = alice.get("/search/", {"q": "printer"}).content.decode()
    assert "This does not mean that there is no such ticket." in html
    assert "found nothing like it" not in html


def test_a_found_ticket_says_how_likely_in_which_language_by_what_and_where(alice: Client) -> None:
    """By one GET, without JavaScript."""
    TicketFactory(title="Printout fails on second floor", description="Nothing comes out since Monday.")
    call_command("embed_worker", once=True, verbosity=0)
    TicketFactory(title="Badge does not open the door")
    html = alice.get("/search/", {"q": "The printer does not print PRN-1"}).content.decode()
    assert 'data-outcome="found"' in html
    assert 'data-band="likely"' in html or 'data-band="possible"' in html
    assert "Nothing comes out since Monday." in html
    assert re.search(r"Matched by meaning \(0\.\d\d\)", html)
    assert "1 of 2 tickets is not searchable by meaning yet." in html
    assert "has not been calibrated yet" in html
    german = alice.get("/search/", {"q": "Drucker"}, headers={"Accept-Language": "de"}).content.decode()
    assert re.search(r"\(0,\d\d\)", german)


def test_every_search_is_logged(alice: Client, agent: User, search_off: None) -> None:
    alice.get("/search/", {"q": "printer"})
    log = SearchLog.objects.get()
    assert (log.text, log.user) == ("printer", agent)


def test_closed_tickets_only_when_asked_for(alice: Client, search_off: None) -> None:
    TicketFactory(title="Scanner SCN-77 offline", status=Ticket.Status.CLOSED)
    assert "Scanner" not in alice.get("/search/", {"q": "SCN-77"}).content.decode()
    assert "Scanner" in alice.get("/search/", {"q": "SCN-77", "closed": "1"}).content.decode()


def test_html_in_a_ticket_and_in_the_question_is_text(alice: Client, search_off: None) -> None:
    TicketFactory(
        title="<script>alert(1)</script> ERR-4711", description='<img src=x onerror="alert(2)"> ERR-4711'
    )
    html = alice.get("/search/", {"q": '"><b>ERR-4711'}).content.decode()
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "<b>ERR" not in html


def test_a_very_long_question_is_cut_visibly(alice: Client, search_off: None) -> None:
    html = alice.get("/search/", {"q": "printer " * 2000}).content.decode()
    assert "the first 8000 were searched for" in html


def test_odd_characters_do_no_harm(alice: Client, search_off: None) -> None:
    for question in ("\x00printer", "🖨️ 💥", "الطابعة لا تعمل", "%", "\\", "''", "(((", "a" * 3):
        assert alice.get("/search/", {"q": question}).status_code == 200


def test_speaks_german(alice: Client, search_off: None) -> None:
    html = alice.get("/search/", {"q": "Drucker"}, headers={"Accept-Language": "de"}).content.decode()
    assert '<html lang="de">' in html
    assert "Es konnte nicht nach Bedeutung gesucht werden" in html


def test_highlights_whole_tokens_only() -> None:
    terms = terms_of("Der Drucker PRN-2F-01 ist kaputt", ["prn-2f-01"])
    assert terms == ["prn-2f-01", "drucker", "kaputt"]
    assert highlighted("Drucker <PRN-2F-01> bedruckern", terms) == (
        "<mark>Drucker</mark> &lt;<mark>PRN-2F-01</mark>&gt; bedruckern"
    )


def test_what_finds_nothing_can_be_reported_in_the_chat(alice: Client) -> None:
    text = 'Coffee & "cake" <b>'
    page = alice.get("/search/", {"q": text}).content.decode()
    link = re.search(r'href="(/chat/\?text=[^"]*)"', page)
    assert link
    box = alice.get(link[1]).content.decode().partition('id="message"')[2].partition("</textarea>")[0]
    assert box.endswith(">Coffee &amp; &quot;cake&quot; &lt;b&gt;")


@pytest.mark.django_db(transaction=True)
def test_searches_that_wait_for_the_provider_keep_nobody_else_waiting(
    asgi_server: str, alice: Client, voyage: VoyageServer, settings: Any
) -> None:
    TicketFactory(title="Printer jams")
    call_command("embed_worker", once=True, verbosity=0)
    settings.EMBED_TIMEOUT_SECONDS = 60
    voyage.rules.append(lambda texts: Fault(hang=True))
    cookies = {name: morsel.value for name, morsel in alice.cookies.items()}
    most = AT_ONCE + 2
    with (
        ThreadPoolExecutor(most) as pool,
        httpx.Client(base_url=asgi_server, cookies=cookies, timeout=60) as web,
    ):
        searches = [pool.submit(web.get, f"/search/?q=printer+{number}") for number in range(most)]
        wait_for(lambda: voyage.most_at_once == most)
        assert httpx.get(f"{asgi_server}/healthz?part=web", timeout=20).status_code == 200
        assert not any(search.done() for search in searches)
        voyage.stop()
        assert {search.result().status_code for search in searches} == {200}
