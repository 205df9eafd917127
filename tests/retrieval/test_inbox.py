"""The inbox of possible duplicates, without JavaScript: every key is a button of a form."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval.judging import judge, sort_out_candidates
from retrieval.models import DuplicateCandidate, Incident, IncidentMember, Verdict
from retrieval.triage import counting
from retrieval.triage.inbox import waiting
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db
INBOX = "/admin/tickets/ticket/duplicates/"


def propose(title: str = "Printer broken", **given: Any) -> DuplicateCandidate:
    older = TicketFactory(title=f"{title} again", created_at=timezone.now() - timedelta(days=3))
    newer = TicketFactory(title=title)
    values = {"score": 0.8, "similarity": 0.8, "likely": True, "matched": ["meaning"], "model": "m:1"}
    return DuplicateCandidate.objects.create(ticket=newer, candidate=older, **(values | given))


def decide(client: Client, row: DuplicateCandidate, judgement: str, **data: Any) -> Any:
    return client.post(f"{INBOX}{row.pk}/", {"judgement": judgement, **data}, follow=True)


def test_both_tickets_side_by_side_with_differences_marked(alice: Client) -> None:
    row = propose("Printer <b>broken</b>")
    html = alice.get(INBOX).content.decode()
    assert f"#{row.ticket_id}" in html
    assert f"#{row.candidate_id}" in html
    assert "<mark>again</mark>" in html
    assert "Printer &lt;b&gt;broken" in html
    assert "<b>broken" not in html
    assert "meaning (0.80)" in html
    for key in "srdl":
        assert f'data-key="{key}"' in html


def test_counts_by_age_and_band(alice: Client) -> None:
    now = timezone.now()
    propose("a")
    propose("b", created_at=now - timedelta(days=3), likely=False)
    propose("c", created_at=now - timedelta(days=30))
    counts = alice.get(INBOX).context["counts"]
    assert counts == {"all": 3, "likely": 2, "today": 1, "this_week": 1, "older": 1}
    html = alice.get(INBOX + "?band=likely").content.decode()
    assert "b again" not in html


def test_nothing_is_counted_beyond_what_people_read(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST", 3)
    for number in range(4):
        propose(str(number))
    page = alice.get(INBOX)
    assert page.context["counts"]["all"] == 3
    assert '<span class="count">2+</span>' in page.content.decode()


def test_the_inbox_is_read_in_the_order_of_its_index(alice: Client) -> None:
    propose()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    plan = waiting()[:30].explain()
    assert "retrieval_candidate_waiting" in plan
    assert "Sort" not in plan


def test_pairs_that_nobody_has_to_judge_are_no_longer_in_its_index(alice: Client) -> None:
    for number in range(6):
        propose(str(number), created_at=timezone.now() - timedelta(days=9))
    Ticket.objects.filter(newer_candidates=None).update(status="resolved")
    row = propose("waits")
    assert _rows_read() == 7
    sort_out_candidates()
    assert _rows_read() == 1
    assert alice.get(INBOX).context["rows"] == [row]


def _rows_read() -> int:
    """How many pairs the database looks at for the first page of the inbox."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    found = re.search(
        r"retrieval_candidate_waiting.*?rows=([\d.]+) loops=1", waiting()[:30].explain(analyze=True)
    )
    assert found
    return round(float(found[1]))


def test_the_likely_ones_first_and_the_nearest_of_them(alice: Client) -> None:
    now = timezone.now()
    fourth = propose("possible", likely=False, similarity=0.9, created_at=now - timedelta(days=9))
    third = propose("close", created_at=now - timedelta(days=5))
    second = propose("young", similarity=0.85)
    first = propose("old", similarity=0.85, created_at=now - timedelta(days=2))
    page = alice.get(INBOX)
    assert page.context["rows"] == [first, second, third, fourth]
    assert page.context["pair"].row == first
    assert page.context["next"] == second


def test_same_merges_and_goes_on_to_the_next(alice: Client) -> None:
    row, following = propose("a"), propose("b")
    page = decide(alice, row, "same", next=following.pk)
    row.ticket.refresh_from_db()
    assert row.ticket.duplicate_of_id == row.candidate_id
    assert page.context["pair"].row == following
    assert f"#{row.ticket_id} is now a duplicate of #{row.candidate_id}." in page.content.decode()


def test_the_same_as_a_solved_one_says_that_it_is_solved(alice: Client) -> None:
    row = propose()
    Ticket.objects.filter(pk=row.candidate_id).update(status="resolved")
    html = decide(alice, row, "same").content.decode()
    assert f"#{row.ticket_id} is now a duplicate of #{row.candidate_id}. <a href=" in html
    assert f">#{row.candidate_id}</a> is already resolved: reopen it if the problem has come back." in html


@pytest.mark.parametrize("judgement", ["same", "related", "different"])
def test_a_judged_pair_never_returns_and_can_be_undone(alice: Client, judgement: str) -> None:
    row = propose()
    assert decide(alice, row, judgement).context["pair"] is None
    page = alice.post(INBOX + "undo/", follow=True)
    assert page.context["pair"].row == row
    assert not Verdict.objects.exists()
    assert "nothing to undo" in alice.post(INBOX + "undo/", follow=True).content.decode()


def test_later_puts_it_at_the_end(alice: Client) -> None:
    row, following = propose("a"), propose("b")
    assert decide(alice, row, "later").context["rows"] == [following, row]
    assert alice.post(INBOX + "undo/", follow=True).context["rows"] == [row, following]
    assert not Verdict.objects.exists()


def test_somebody_else_was_faster(alice: Client) -> None:
    row = propose()
    page = alice.get(f"{INBOX}?pair={row.pk}")
    judge(row.ticket, row.candidate, "different", by=UserFactory(agent=True, first_name="Bob"))
    html = decide(alice, row, "same").content.decode()
    assert "Bob has already judged" in html
    row.ticket.refresh_from_db()
    assert row.ticket.duplicate_of is None
    html = alice.get(f"{INBOX}?pair={row.pk}").content.decode()
    assert "Bob has already judged this pair: different." in html
    assert page.status_code == 200


def test_a_ticket_deleted_meanwhile(alice: Client) -> None:
    row = propose()
    pk = row.pk
    row.ticket.delete()
    assert "has been deleted" in alice.get(f"{INBOX}?pair={pk}").content.decode()
    assert (
        "has been deleted" in alice.post(f"{INBOX}{pk}/", {"judgement": "same"}, follow=True).content.decode()
    )


def test_a_merge_that_is_impossible_is_told_in_a_sentence(alice: Client, agent: User) -> None:
    row = propose()
    row.candidate.merge_into(row.ticket, agent)
    assert "itself a duplicate" in decide(alice, row, "same").content.decode()


def test_a_solved_one_says_when_and_how_and_can_be_reopened(alice: Client) -> None:
    row = propose()
    Ticket.objects.filter(pk=row.candidate_id).update(
        status="resolved", resolution="New toner.", resolved_at=timezone.now()
    )
    html = alice.get(INBOX).content.decode()
    assert "Solved on" in html
    assert "New toner." in html
    data = {"back": f"pair-{row.pk}"}
    page = alice.post(f"/admin/tickets/ticket/{row.candidate_id}/reopen/", data, follow=True)
    row.candidate.refresh_from_db()
    assert (row.candidate.status, row.candidate.resolved_at) == ("open", None)
    assert page.context["pair"].row == row


def test_pairs_of_a_proposed_incident_are_asked_there(alice: Client) -> None:
    row = propose()
    incident = Incident.objects.create(parent=row.candidate)
    for ticket in (row.ticket, row.candidate):
        IncidentMember.objects.create(incident=incident, ticket=ticket)
    assert alice.get(INBOX).context["pair"] is None
    Incident.objects.update(state="dismissed")
    assert alice.get(INBOX).context["pair"].row == row


def test_empty(alice: Client) -> None:
    assert "Nothing to decide." in alice.get(INBOX).content.decode()


def test_readers_see_but_do_not_decide(client: Client) -> None:
    row = propose()
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket"]))
    assert 'data-key="s"' not in client.get(INBOX).content.decode()
    assert client.post(f"{INBOX}{row.pk}/", {"judgement": "different"}).status_code == 403
    assert client.post(INBOX + "undo/").status_code == 403


def test_strangers_and_staff_without_permission(client: Client) -> None:
    assert client.get(INBOX).status_code == 302
    client.force_login(UserFactory(is_staff=True))
    assert client.get(INBOX).status_code == 403


def test_decisions_are_posts_with_a_token(agent: User) -> None:
    row = propose()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(agent)
    assert strict.get(f"{INBOX}{row.pk}/").status_code == 405
    assert strict.post(f"{INBOX}{row.pk}/", {"judgement": "different"}).status_code == 403


@pytest.mark.parametrize("query", ["?pair=x", "?pair=99999999", "?pair=", "?band=nonsense"])
def test_odd_addresses(alice: Client, query: str) -> None:
    assert alice.get(INBOX + query).status_code == 200


def test_long_and_odd_texts(alice: Client) -> None:
    row = propose("🖨️🔥")
    Ticket.objects.update(description="word and " * 11_000)
    html = alice.get(INBOX).content.decode()
    assert "Only the beginning" in html
    assert len(html) < 200_000
    assert row.ticket.title in html


def test_queries_do_not_grow_with_the_inbox(alice: Client) -> None:
    propose()
    alice.get(INBOX)
    with CaptureQueriesContext(connection) as few:
        alice.get(INBOX)
    for number in range(10):
        propose(str(number))
    with CaptureQueriesContext(connection) as many:
        alice.get(INBOX)
    assert len(few) == len(many)
    assert len(many) <= 15
