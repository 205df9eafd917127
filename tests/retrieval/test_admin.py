"""The admin of what machines wrote: every list and page opens, nothing can be changed."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

from retrieval.models import SearchLog, TicketEmbedding, Verdict, WorkerState
from retrieval.search import find_similar
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

TABLES = ("ticketembedding", "indexstate", "workerstate", "searchlog", "verdict")


@pytest.fixture
def root(client: Client) -> User:
    user = User.objects.create_superuser("root")
    client.force_login(user)
    ticket = TicketFactory(title="Printer is on fire")
    call_command("embed_worker", once=True, verbosity=0)
    find_similar("Printer", user=user)
    Verdict.objects.create(candidate=ticket, judgement="same", by=user)
    return user


@pytest.mark.parametrize("table", TABLES)
def test_lists_open_with_few_queries(
    root: User, client: Client, table: str, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert client.get(f"/admin/retrieval/{table}/").status_code == 200


def test_pages_open_and_take_no_change(root: User, client: Client) -> None:
    row, log = TicketEmbedding.objects.get(), SearchLog.objects.get()
    assert client.get(f"/admin/retrieval/ticketembedding/{row.pk}/change/").status_code == 200
    assert client.get(f"/admin/retrieval/searchlog/{log.pk}/change/").status_code == 200
    assert client.post(f"/admin/retrieval/searchlog/{log.pk}/change/", {"text": "x"}).status_code == 403
    assert client.get("/admin/retrieval/searchlog/add/").status_code == 403
    assert client.post(f"/admin/retrieval/ticketembedding/{row.pk}/delete/").status_code == 403


def test_whoever_may_delete_a_ticket_may_delete_what_goes_with_it(root: User, client: Client) -> None:
    ticket = Ticket.objects.get()
    page = f"/admin/tickets/ticket/{ticket.pk}/delete/"
    agent = UserFactory(agent=True)
    client.force_login(agent)
    assert client.post(page, {"post": "yes"}).status_code == 403
    agent.groups.set([Group.objects.get(name="supervisor")])
    client.post(page, {"post": "yes"})
    assert not Ticket.objects.exists()
    assert not TicketEmbedding.objects.exists()
    assert not Verdict.objects.exists()


def test_searches_are_told_by_their_outcome(root: User, client: Client) -> None:
    list_page = "/admin/retrieval/searchlog/"
    html = client.get(list_page, headers={"Accept-Language": "de"}).content.decode()
    assert "gefunden" in html
    assert client.get(list_page, {"outcome": "unavailable"}).context["cl"].result_count == 0
    assert client.get(list_page, {"outcome": "found"}).context["cl"].result_count == 1


def test_only_what_failed(root: User, client: Client) -> None:
    list_page = "/admin/retrieval/ticketembedding/"
    assert client.get(list_page, {"failed": "1"}).context["cl"].result_count == 0
    TicketEmbedding.objects.update(failed_hash=b"x")
    assert client.get(list_page, {"failed": "1"}).context["cl"].result_count == 1


def test_reasons_and_outcomes_are_in_words(root: User, client: Client) -> None:
    SearchLog.objects.create(text="x", outcome="unavailable", reason_code="key_refused")
    SearchLog.objects.create(text="y", outcome="unavailable", reason_code="of_tomorrow")
    WorkerState.objects.create(name="w", activity="paused", reason_code="provider_down")
    html = client.get("/admin/retrieval/searchlog/").content.decode()
    assert "API key refused" in html
    assert "could not search" in html
    assert "of_tomorrow" in html  # a code of another version is better than nothing
    assert "provider out of reach" in client.get("/admin/retrieval/workerstate/").content.decode()
