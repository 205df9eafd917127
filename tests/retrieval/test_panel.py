"""Similar tickets beside a ticket, and one click to judge each."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval.judging import judge
from retrieval.models import SearchProfile, Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def pair() -> tuple[Ticket, Ticket]:
    """A new ticket and an older one for the same problem, both with a vector."""
    SearchProfile.objects.create(
        model="use-multilingual-3:512", floor=0.35, likely=0.6, calibrated_at=timezone.now()
    )
    older = TicketFactory(
        title="Printout fails on second floor", description="<i>Nothing</i> comes out, E-5012."
    )
    newer = TicketFactory(
        title="Drucker im 2. Stock druckt nicht", description="Es kommt nichts heraus. E-5012"
    )
    call_command("embed_worker", "--once", verbosity=0)
    return newer, older


def panel(client: Client, ticket: Ticket, **headers: Any) -> str:
    response = client.get(f"/admin/tickets/ticket/{ticket.pk}/similar/", headers=headers or HTMX)
    assert response.status_code == 200
    return response.content.decode()


def judging(client: Client, ticket: Ticket, other: Ticket, judgement: str, **extra: Any) -> Any:
    address = f"/admin/tickets/ticket/{ticket.pk}/judge/{other.pk}/"
    return client.post(address, {"judgement": judgement}, **extra)


def test_the_page_asks_for_the_panel_after_it_has_loaded(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    with CaptureQueriesContext(connection) as queries:
        html = alice.get(f"/admin/tickets/ticket/{pair[0].pk}/change/").content.decode()
    assert f'hx-get="/admin/tickets/ticket/{pair[0].pk}/similar/"' in html
    assert "<#>" not in "".join(query["sql"] for query in queries)


def test_band_status_language_passage_and_why(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    html = panel(alice, pair[0])
    assert "Likely the same" in html
    assert "Printout fails on second floor" in html
    assert ">EN<" in html
    assert "shared identifier" in html
    assert "&lt;i&gt;Nothing" in html
    assert "<i>Nothing" not in html
    assert "<html" not in html


def test_without_javascript_it_is_a_page(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    html = panel(alice, pair[0], **{"Accept": "text/html"})
    assert "<html" in html
    assert "Printout fails on second floor" in html


def test_a_solved_ticket_tells_when_and_how(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    assert "Reopen" not in panel(alice, newer)
    Ticket.objects.filter(pk=older.pk).update(
        status="resolved", resolution="New toner.", resolved_at=timezone.now()
    )
    html = panel(alice, newer)
    assert "Solved on" in html
    assert "New toner." in html
    assert f"Reopen #{older.pk}" in html


def test_reopen(alice: Client, agent: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    older.change(by=agent, via="admin", status="resolved", resolution="New toner.")
    page = alice.post(f"/admin/tickets/ticket/{older.pk}/reopen/", {"back": str(newer.pk)}, follow=True)
    older.refresh_from_db()
    assert (older.status, older.resolution) == ("open", "New toner.")
    assert older.events.filter(field="status", new="open", actor=agent).exists()
    assert page.request["PATH_INFO"] == f"/admin/tickets/ticket/{newer.pk}/change/"


def test_a_merged_ticket_cannot_be_reopened_past_its_merge(
    alice: Client, agent: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    newer.merge_into(older, agent)
    page = alice.post(f"/admin/tickets/ticket/{newer.pk}/reopen/", follow=True)
    assert "Undo the merge to change its status" in page.content.decode()


def test_same_merges_and_leads_back_to_the_ticket(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    page = judging(alice, newer, older, "same", follow=True)
    newer.refresh_from_db()
    assert newer.duplicate_of == older
    assert "Undo merge" in page.content.decode()


def test_related_is_shown_and_can_be_taken_back(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    html = judging(alice, newer, older, "related", headers=HTMX).content.decode()
    assert "Related tickets" in html
    assert "are related now" in html
    html = judging(alice, newer, older, "undo", headers=HTMX).content.decode()
    assert "Related tickets" not in html
    assert not Verdict.objects.exists()
    assert "Likely the same" in html


def test_different_never_again_on_either_side(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    assert older.title not in judging(alice, newer, older, "different", headers=HTMX).content.decode()
    assert newer.title not in panel(alice, older)


def test_somebody_was_faster(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    judge(*pair, "different", by=UserFactory(agent=True, first_name="Bob"))
    html = judging(alice, *pair, "same", headers=HTMX).content.decode()
    assert "Bob has already judged" in html


def test_its_duplicates_are_not_similar_tickets(
    alice: Client, agent: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    newer.merge_into(older, agent)
    assert newer.title not in panel(alice, older)
    assert older.title not in panel(alice, newer)


def test_waiting_for_its_vector_it_says_so_and_asks_again(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    fresh = TicketFactory(title="Something new")
    html = panel(alice, fresh)
    assert "not indexed yet" in html
    assert 'hx-trigger="load delay:5s"' in html


def test_a_ticket_without_a_word_is_not_waited_for(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    ticket = TicketFactory(title="🔥🔥", description="")
    html = alice.get(f"/admin/tickets/ticket/{ticket.pk}/similar/").content.decode()
    assert "no words to compare" in html
    assert "delay:5s" not in html


def test_switched_off_it_says_so(alice: Client, pair: tuple[Ticket, Ticket], settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    html = panel(alice, pair[0])
    assert "EMBEDDING_PROVIDER" in html
    assert "load delay" not in html
    assert pair[1].title in html  # they share an error code


def test_nothing_like_it_is_said_plainly(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    other = TicketFactory(title="Parking permit", description="Where do I get one for the car park?")
    call_command("embed_worker", "--once", verbosity=0)
    SearchProfile.objects.update(floor=0.9, likely=0.95)
    assert "Compared, and found nothing like it." in panel(alice, other)


def test_readers_see_it_without_buttons(client: Client, pair: tuple[Ticket, Ticket]) -> None:
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket"]))
    html = panel(client, pair[0])
    assert pair[1].title in html
    assert "<button" not in html
    assert judging(client, *pair, "different").status_code == 403
    assert client.post(f"/admin/tickets/ticket/{pair[0].pk}/reopen/").status_code == 403


def test_staff_without_permission_see_nothing(client: Client, pair: tuple[Ticket, Ticket]) -> None:
    client.force_login(UserFactory(is_staff=True))
    assert client.get(f"/admin/tickets/ticket/{pair[0].pk}/similar/").status_code == 403


def test_unknown_tickets_and_wrong_methods(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    assert alice.get("/admin/tickets/ticket/99999999/similar/").status_code == 404
    assert alice.post(f"/admin/tickets/ticket/{pair[0].pk}/similar/").status_code == 405
    assert alice.get(f"/admin/tickets/ticket/{pair[0].pk}/judge/{pair[1].pk}/").status_code == 405
    assert judging(alice, *pair, "nonsense").status_code == 403
    assert judging(alice, pair[0], Ticket(pk=99999999), "same").status_code == 404


def test_its_queries_are_bounded(alice: Client, pair: tuple[Ticket, Ticket]) -> None:
    for number in range(5):
        TicketFactory(title=f"Printout {number} fails on second floor")
    call_command("embed_worker", "--once", verbosity=0)
    panel(alice, pair[0])
    with CaptureQueriesContext(connection) as queries:
        panel(alice, pair[0])
    assert len(queries) <= 16, [query["sql"][:90] for query in queries]
