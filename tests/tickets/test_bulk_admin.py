"""Changing and merging many tickets: what was done and what was not is told for each of them."""

import threading
from time import monotonic, sleep
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets import bulk
from tickets.models import BulkRun, Ticket, TicketEvent

pytestmark = pytest.mark.django_db
LIST = "/admin/tickets/ticket/"


def ids(*tickets: Ticket) -> str:
    return ",".join(str(ticket.pk) for ticket in tickets)


def run_through(client: Client, address: str) -> Any:
    """What the page does by itself until the run is done."""
    response = client.get(address)
    while response.context["run"].finished_at is None:
        response = client.post(address, follow=True)
    return response


def start(client: Client, what: str, **data: Any) -> str:
    response = client.post(f"{LIST}many/{what}/", data)
    assert response.status_code == 302, response.context["form"].errors
    return response.headers["Location"]


# -- asking ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["change_many", "merge_many"])
def test_an_action_asks_first(agent_client: Client, action: str) -> None:
    one, other = TicketFactory(title="<b>One</b>"), TicketFactory()
    response = agent_client.post(LIST, {"action": action, "_selected_action": [one.pk, other.pk]})
    assertContains(response, "2 tickets have been chosen")
    assertContains(response, "&lt;b&gt;One&lt;/b&gt;")
    assertContains(response, f'value="{ids(one, other)}"')
    assert not BulkRun.objects.exists()


def test_everything_that_the_list_finds(agent_client: Client) -> None:
    TicketFactory.create_batch(3, priority="urgent")
    TicketFactory(priority="low")
    data = {"action": "change_many", "select_across": "1", "_selected_action": [Ticket.objects.first().pk]}  # type: ignore[union-attr]
    response = agent_client.post(f"{LIST}?view=urgent", data)
    assertContains(response, "3 tickets have been chosen")


def test_more_than_one_run_takes(agent_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickets.bulk_admin.MOST", 2)
    tickets = TicketFactory.create_batch(3)
    data = {"action": "change_many", "_selected_action": [ticket.pk for ticket in tickets]}
    assertContains(agent_client.post(LIST, data, follow=True), "Narrow the list down first")


@pytest.mark.parametrize(
    ("what", "data", "sentence"),
    [
        ("change", {}, "Choose at least one thing to change."),
        ("change", {"status": "nonsense"}, "not one of the available choices"),
        ("change", {"ids": "", "status": "open"}, "Please choose them again."),
        ("change", {"ids": "1,x", "status": "open"}, "Please choose them again."),
        ("merge", {"target": "999999"}, "There is no ticket with this number."),
        ("merge", {}, "This field is required."),
    ],
)
def test_an_answer_that_means_nothing(agent_client: Client, what: str, data: Any, sentence: str) -> None:
    ticket = TicketFactory()
    assertContains(agent_client.post(f"{LIST}many/{what}/", {"ids": ticket.pk, **data}), sentence)
    assert not BulkRun.objects.exists()


# -- doing -----------------------------------------------------------------------------------------------


def test_every_field_and_its_report(agent_client: Client, alice: User, bob: User) -> None:
    vpn = CategoryFactory(name="VPN")
    fresh, same = TicketFactory(), TicketFactory()
    same.change(by=bob, via="admin", status="open", priority="high", category=vpn, assignee=alice)
    data = {"status": "open", "priority": "high", "category": vpn.pk, "assignee": alice.pk}
    response = run_through(agent_client, start(agent_client, "change", ids=ids(fresh, same), **data))
    fresh.refresh_from_db()
    assert (fresh.status, fresh.priority, fresh.category, fresh.assignee) == ("open", "high", vpn, alice)
    assert fresh.events.filter(kind="changed", actor=alice, via="admin").count() == 4
    for sentence in ("1 ticket changed", "1 was like that already", "0 not changed"):
        assertContains(response, sentence)
    assertContains(response, "“assignee” becomes Alice Adams")
    assertContains(response, "“status” becomes open")


def test_clearing_the_assignee(agent_client: Client, alice: User) -> None:
    ticket = TicketFactory(assignee=alice)
    run_through(agent_client, start(agent_client, "change", ids=ids(ticket), assignee="none"))
    assert Ticket.objects.get().assignee is None


def test_what_is_refused_is_named_and_holds_up_nothing(agent_client: Client, alice: User) -> None:
    fine, duplicate, target, gone = TicketFactory.create_batch(4)
    duplicate.merge_into(target, by=alice)
    chosen = ids(fine, duplicate, gone)
    Ticket.objects.filter(pk=gone.pk).delete()
    response = run_through(agent_client, start(agent_client, "change", ids=chosen, status="pending"))
    assertContains(response, f"#{duplicate.pk} is a duplicate of #{target.pk}. Undo the merge")
    assertContains(response, "It has been deleted in the meantime.")
    assertContains(response, "2 not changed")
    assert Ticket.objects.get(pk=fine.pk).status == "pending"


def test_merging_many(agent_client: Client, alice: User) -> None:
    stays, one, other, already = TicketFactory.create_batch(4)
    already.merge_into(other, by=alice)
    address = start(agent_client, "merge", ids=ids(stays, one, already), target=f"#{stays.pk}")
    response = run_through(agent_client, address)
    assert set(Ticket.objects.filter(duplicate_of=stays)) == {one}
    assertContains(response, f"#{already.pk} is already a duplicate of #{other.pk}")
    assertContains(response, "1 ticket changed")


def test_what_the_run_needs_is_deleted_meanwhile(agent_client: Client, alice: User) -> None:
    one, target, vpn = TicketFactory(), TicketFactory(), CategoryFactory()
    merging = start(agent_client, "merge", ids=ids(one), target=target.pk)
    moving = start(agent_client, "change", ids=ids(one), category=vpn.pk)
    target.delete()
    vpn.delete()
    assertContains(run_through(agent_client, merging), "to merge into has been deleted")
    assertContains(run_through(agent_client, moving), "the category has been deleted")


def test_five_thousand_tickets_in_bounded_steps(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step never holds more tickets than a chunk, and a run left half-way goes on where it was."""
    Ticket.objects.bulk_create(Ticket(title=f"{n}", reporter=alice) for n in range(5_000))
    held: list[int] = []
    in_bulk = bulk.Ticket.objects.all().__class__.in_bulk

    def counted(self: Any, *args: Any) -> Any:
        found = in_bulk(self, *args)
        held.append(len(found))
        return found

    monkeypatch.setattr(bulk.Ticket.objects.all().__class__, "in_bulk", counted)
    monkeypatch.setattr(Ticket, "change", lambda self, **changes: [self.pk])  # its cost is another test's
    run = bulk.begin(Ticket.objects.values_list("pk", flat=True), by=alice, changes={"priority": "low"})
    run = bulk.advance(run.pk, alice, seconds=0)
    assert (run.position, run.finished_at) == (bulk.CHUNK, None)
    while run.finished_at is None:
        run = bulk.advance(run.pk, alice)
    assert len(run.done) == 5_000
    assert max(held) == bulk.CHUNK


def test_stopping_and_going_on(agent_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 1)
    monkeypatch.setattr(bulk.advance, "__defaults__", (0.0,))
    tickets = TicketFactory.create_batch(2)
    address = start(agent_client, "change", ids=ids(*tickets), priority="high")
    assertContains(agent_client.post(address, follow=True), "tickets/run.js")
    assertNotContains(agent_client.get(address + "?stop"), "tickets/run.js")
    assertContains(agent_client.get(LIST), address + "?stop")
    assert BulkRun.objects.get().position == 1
    run_through(agent_client, address)
    assertNotContains(agent_client.get(LIST), address)
    assert Ticket.objects.filter(priority="high").count() == 2


def test_a_finished_run_does_nothing_again(agent_client: Client, bob: User) -> None:
    ticket = TicketFactory()
    address = start(agent_client, "change", ids=ids(ticket), priority="high")
    run_through(agent_client, address)
    ticket.change(by=bob, via="admin", priority="low")
    agent_client.post(address)
    assert Ticket.objects.get().priority == "low"


# -- who may ---------------------------------------------------------------------------------------------


def test_a_run_is_its_owners(agent_client: Client, client: Client, bob: User) -> None:
    ticket = TicketFactory()
    address = start(agent_client, "change", ids=ids(ticket), priority="high")
    client.force_login(bob)
    assert client.get(address).status_code == client.post(address).status_code == 404
    assert Ticket.objects.get().version == 1


def test_rights_that_are_lost_on_the_way(alice: User) -> None:
    ticket = TicketFactory()
    run = bulk.begin([ticket.pk], by=alice, changes={"priority": "high"})
    alice.user_permissions.clear()
    run = bulk.advance(run.pk, alice)
    assert run.refused == [[ticket.pk, "You may no longer change tickets."]]


def test_who_may_only_look(client: Client) -> None:
    ticket = TicketFactory()
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket"]))
    assertNotContains(client.get(LIST), "change_many")
    assert client.post(f"{LIST}many/change/", {"ids": ticket.pk, "status": "open"}).status_code == 403
    assert not TicketEvent.objects.exclude(kind="created").exists()


def test_the_address_alone_does_nothing(agent_client: Client) -> None:
    assert agent_client.get(f"{LIST}many/change/").status_code == 404
    assert agent_client.post(f"{LIST}many/nonsense/").status_code == 404
    assert agent_client.get(f"{LIST}runs/12345/").status_code == 404


def test_merging_many_into_a_solved_ticket_says_so(agent_client: Client) -> None:
    target, other = TicketFactory(status="resolved"), TicketFactory()
    address = start(agent_client, "merge", ids=ids(other), target=str(target.pk))
    assertContains(agent_client.get(address), f"#{target.pk}</a> is already resolved: reopen it")


def test_merging_many_into_a_duplicate_of_an_open_ticket_does_not(agent_client: Client, alice: User) -> None:
    end, target, other = TicketFactory.create_batch(3)
    target.merge_into(end, by=alice)
    address = start(agent_client, "merge", ids=ids(other), target=str(target.pk))
    assertNotContains(agent_client.get(address), "reopen it")


@pytest.mark.django_db(transaction=True)
def test_a_merge_waits_for_a_chunk_without_holding_what_it_needs() -> None:
    """Somebody holds a ticket in the middle of the run, and then wants the target as well."""
    alice = UserFactory(agent=True)
    first, held, target = TicketFactory.create_batch(3)
    run = bulk.begin([first.pk, held.pk], by=alice, target=target)

    def advance() -> None:
        try:
            bulk.advance(run.pk, alice)
        finally:
            connection.close()

    thread = threading.Thread(target=advance)
    with transaction.atomic():
        held.locked()
        thread.start()
        wait_until_somebody_waits()
        target.locked()  # a deadlock, if the run holds it already
    thread.join(20)
    run.refresh_from_db()
    assert run.done == [first.pk, held.pk]


def wait_until_somebody_waits() -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    until = monotonic() + 20
    with connection.cursor() as cursor:
        while not cursor.execute(waiting).fetchone():
            assert monotonic() < until
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            sleep(0.01)
