"""Search by meaning over the API, with its three outcomes."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from rest_framework.test import APIClient

from retrieval import judging
from retrieval.models import SearchLog
from tests.factories import TicketFactory, UserFactory
from tickets.api.models import ApiToken
from tickets.models import Ticket

SEARCH = "/api/v1/search/"


def client_of(user: User) -> APIClient:
    return APIClient(headers={"authorization": f"Bearer {ApiToken.issue(user=user, name='x', by=user)[1]}"})


@pytest.fixture
def client(db: Any) -> APIClient:
    return client_of(UserFactory(agent=True, username="alice"))


@pytest.fixture
def corpus(db: Any) -> Any:
    ticket = TicketFactory(
        title="Printout fails on second floor", description="The printer is dead", status="open"
    )
    for title in ("Coffee machine leaks", "VPN drops every hour", "New laptop for Carla", "Screen flickers"):
        TicketFactory(title=title)
    call_command("embed_worker", "--once", verbosity=0)
    return ticket


class TestFound:
    def test_across_languages(self, client: APIClient, corpus: Any) -> None:
        body = client.get(SEARCH, {"q": "Drucker druckt nicht im zweiten Stock"}).json()
        assert (body["outcome"], body["reason"], body["reason_code"]) == ("found", "", "")
        assert body["coverage"]["indexed"] == body["coverage"]["total"] == 5
        best = body["results"][0]
        assert best["ticket"]["id"] == corpus.pk
        assert best["rank"] == 1
        assert "meaning" in best["matched"]
        assert 0 < best["similarity"] <= 1
        assert "description" not in best["ticket"]

    def test_limit_and_status(self, client: APIClient, corpus: Any) -> None:
        results = client.get(SEARCH, {"q": "printer", "limit": "1"}).json()["results"]
        assert len(results) == 1
        results = client.get(f"{SEARCH}?q=printer&status=closed&status=resolved").json()["results"]
        assert results == []

    def test_is_logged_with_who_asked(self, client: APIClient, corpus: Any) -> None:
        client.get(SEARCH, {"q": "printer"})
        log = SearchLog.objects.get()
        assert (log.text, log.user.username) == ("printer", "alice")  # type: ignore[union-attr]


def test_similar_tickets_never_hold_the_ticket_itself(client: APIClient, corpus: Any) -> None:
    again = TicketFactory(title="Printout fails on the second floor", description="Printer dead again")
    call_command("embed_worker", "--once", verbosity=0)
    body = client.get(f"/api/v1/tickets/{again.pk}/similar/").json()
    assert body["outcome"] == "found"
    ids = [hit["ticket"]["id"] for hit in body["results"]]
    assert ids[0] == corpus.pk
    assert again.pk not in ids


def similar(client: APIClient, ticket: Ticket, **asked: str) -> dict[str, Any]:
    return client.get(f"/api/v1/tickets/{ticket.pk}/similar/", asked).json()


def test_similar_tickets_are_those_that_nobody_has_decided_on(client: APIClient, corpus: Ticket) -> None:
    alice = User.objects.get(username="alice")
    title = "Printout fails on the second floor"
    merged, linked, different, undecided = (TicketFactory(title=title) for _ in range(4))
    call_command("embed_worker", "--once", verbosity=0)
    judging.judge(corpus, merged, "same", by=alice)
    corpus.link_to(linked, alice)
    judging.judge(corpus, different, "different", by=alice)
    ids = [hit["ticket"]["id"] for hit in similar(client, corpus)["results"]]
    assert undecided.pk in ids
    assert not {corpus.pk, merged.pk, linked.pk, different.pk} & set(ids)


def test_similar_tickets_of_some_statuses_and_of_some_number(client: APIClient, corpus: Ticket) -> None:
    title = "Printout fails on the second floor"
    new, closed = TicketFactory(title=title), TicketFactory(title=title, status="closed")
    call_command("embed_worker", "--once", verbosity=0)
    ids = [hit["ticket"]["id"] for hit in similar(client, corpus, status="closed")["results"]]
    assert ids == [closed.pk]
    assert len(similar(client, corpus)["results"]) > 1
    assert len(similar(client, corpus, limit="1")["results"]) == 1
    assert new.pk in [hit["ticket"]["id"] for hit in similar(client, corpus, status="new")["results"]]


def test_a_ticket_that_waits_for_its_vector_is_compared_with_nothing(
    client: APIClient, corpus: Ticket
) -> None:
    """Its text is not sent to the provider for it, and no search is logged: nobody has asked a question."""
    body = similar(client, TicketFactory(title="Printout fails"))
    assert (body["outcome"], body["reason_code"], body["model"]) == ("unavailable", "ticket_waiting", "")
    assert body["coverage"]["total"] >= 5
    assert not SearchLog.objects.exists()


def test_unavailable_says_why_and_keeps_what_shares_words(client: APIClient, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    TicketFactory(title="Error E-4711 on PRN-0201")
    response = client.get(SEARCH, {"q": "PRN-0201"})
    body = response.json()
    assert response.status_code == 200
    assert (body["outcome"], body["reason_code"]) == ("unavailable", "provider_off")
    assert body["reason"]
    assert [hit["similarity"] for hit in body["results"]] == [None]


def test_the_reason_is_in_the_language_asked_for(client: APIClient, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    english = client.get(SEARCH, {"q": "x y"}, headers={"accept-language": "en"})
    german = client.get(SEARCH, {"q": "x y"}, headers={"accept-language": "de"})
    assert (english["Content-Language"], german["Content-Language"]) == ("en", "de")


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({}, "q"),
        ({"q": " "}, "q"),
        ({"q": "\0"}, "q"),
        ({"q": "x" * 10_001}, "q"),
        ({"q": "x", "limit": "0"}, "limit"),
        ({"q": "x", "limit": "21"}, "limit"),
        ({"q": "x", "limit": "many"}, "limit"),
        ({"q": "x", "status": "opne"}, "status"),
        ({"q": "x", "sttus": "open"}, "sttus"),
    ],
)
def test_refuses_what_it_does_not_understand(
    client: APIClient, query: dict[str, str], parameter: str
) -> None:
    response = client.get(SEARCH, query)
    assert response.status_code == 400, response.content
    assert [error["parameter"].split(".")[0] for error in response.json()["errors"]] == [parameter]


def test_needs_the_right_to_view(db: None) -> None:
    assert client_of(UserFactory(is_staff=True)).get(SEARCH, {"q": "x"}).status_code == 403
    assert APIClient().get(SEARCH, {"q": "x"}).status_code == 401


def test_cannot_be_posted(client: APIClient) -> None:
    assert client.post(SEARCH, {"q": "x"}, format="json").status_code == 405
