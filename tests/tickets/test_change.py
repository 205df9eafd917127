import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets import clock
from tickets.models import StaleTicket, Ticket, TicketEvent

pytestmark = pytest.mark.django_db


def changed(ticket: Ticket) -> list[tuple[str, str, str]]:
    return list(ticket.events.filter(kind="changed").values_list("field", "old", "new"))


def test_changes_what_is_named_and_records_it(alice: User) -> None:
    category = CategoryFactory(name="VPN")
    ticket = TicketFactory(title="Old", description="stays")
    events = ticket.change(by=alice, via="api", title="New", category=category, assignee=alice)
    assert changed(ticket) == [
        ("title", "Old", "New"),
        ("category", "", "VPN"),
        ("assignee", "", "Alice Adams"),
    ]
    assert {(event.actor, event.via, event.version) for event in events} == {(alice, "api", 2)}
    assert [event.new_ref for event in events] == [None, category.pk, alice.pk]
    stored = Ticket.objects.get()
    assert (stored.title, stored.description, stored.category, stored.version) == (
        "New",
        "stays",
        category,
        2,
    )
    assert (ticket.title, ticket.version) == ("New", 2)


def test_nothing_happens_if_nothing_differs(alice: User) -> None:
    ticket = TicketFactory(title="Same")
    before = Ticket.objects.values().get()
    assert ticket.change(by=alice, via="api", title=" Same ", status="new", assignee=None) == []
    assert Ticket.objects.values().get() == before
    assert ticket.events.count() == 1


def test_the_concurrent_change_of_another_field_survives(alice: User, bob: User) -> None:
    ticket = TicketFactory()
    other = Ticket.objects.get()
    other.change(by=bob, via="api", priority="urgent")
    ticket.change(by=alice, via="api", title="New")
    assert (ticket.title, ticket.priority) == ("New", "urgent")
    assert Ticket.objects.filter(title="New", priority="urgent", version=3).exists()


def test_a_stale_change_is_refused_and_told_what_happened(alice: User, bob: User) -> None:
    ticket = TicketFactory()
    Ticket.objects.get().change(by=bob, via="admin", priority="urgent")
    with pytest.raises(StaleTicket) as caught:
        ticket.change(by=alice, via="admin", expected_version=1, title="New")
    assert caught.value.current.priority == "urgent"
    assert [event.field for event in caught.value.events] == ["priority"]
    assert "changed by somebody else" in str(caught.value)
    assert not Ticket.objects.filter(title="New").exists()
    ticket.change(by=alice, via="admin", expected_version=2, title="New")
    assert ticket.version == 3


def test_solving_and_reopening_keep_the_time_of_resolution(alice: User) -> None:
    ticket = TicketFactory()
    moment = timezone.now() - timedelta(days=3)
    with clock.at(moment):
        ticket.change(by=alice, via="api", status="resolved", resolution="Restarted")
    assert ticket.resolved_at == ticket.updated_at == moment
    ticket.change(by=alice, via="api", status="closed")
    assert ticket.resolved_at == moment
    ticket.change(by=alice, via="api", status="open")
    assert Ticket.objects.values_list("resolved_at").get() == (None,)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": "  "}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"status": "exploded"}, "status"),
        ({"priority": ""}, "priority"),
        ({"description": "x" * 1_000_001}, "description"),
    ],
)
def test_a_wrong_value_changes_nothing(alice: User, changes: dict[str, Any], field: str) -> None:
    ticket = TicketFactory(title="Old")
    with pytest.raises(ValidationError) as caught:
        ticket.change(by=alice, via="api", **{"resolution": "lost", **changes})
    assert list(caught.value.message_dict) == [field]
    assert (ticket.title, ticket.status, ticket.resolution) == ("Old", "new", "")
    assert not Ticket.objects.exclude(resolution="").exists()


def test_only_staff_is_assigned(alice: User, charlie: User) -> None:
    with pytest.raises(ValidationError, match="only be assigned to staff"):
        TicketFactory().change(by=alice, via="api", assignee=charlie)


def test_an_old_fault_elsewhere_does_not_stand_in_the_way(alice: User, charlie: User) -> None:
    ticket = TicketFactory()
    Ticket.objects.update(assignee=charlie)  # staff once, no longer
    ticket.change(by=alice, via="api", priority="low")
    assert Ticket.objects.get().priority == "low"


def test_what_may_not_be_changed_is_refused(alice: User) -> None:
    with pytest.raises(TypeError, match="duplicate_of, version"):
        TicketFactory().change(by=alice, via="api", version=7, duplicate_of=None)


def test_the_machine_may_be_the_actor() -> None:
    (event,) = TicketFactory().change(by=None, via="system", duplicate_check="searched")
    assert event.actor is None


def test_a_deleted_ticket_is_not_brought_back(alice: User) -> None:
    ticket = TicketFactory()
    Ticket.objects.all().delete()
    with pytest.raises(Ticket.DoesNotExist):
        ticket.change(by=alice, via="api", title="New")


def test_long_and_odd_texts(alice: User) -> None:
    ticket = TicketFactory()
    ticket.change(by=alice, via="api", description="ü\0😀\u202e" * 25_000)
    assert len(Ticket.objects.get().description) == 75_000
    assert changed(ticket) == [("description", "", ticket.description)]


def test_queries(alice: User, django_assert_num_queries: Any) -> None:
    ticket = TicketFactory()
    with django_assert_num_queries(5):  # savepoint, lock, update, event, savepoint
        ticket.change(by=alice, via="api", title="New", priority="high")
    with django_assert_num_queries(3):
        ticket.change(by=alice, via="api", title="New")


@pytest.mark.django_db(transaction=True)
def test_concurrent_changes_are_all_counted() -> None:
    agent, ticket = UserFactory(agent=True), TicketFactory()
    start = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            start.wait()
            for step in range(5):
                Ticket.objects.get(pk=ticket.pk).change(by=agent, via="api", title=f"{number} {step}")
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Ticket.objects.get().version == 21
    versions = list(
        TicketEvent.objects.filter(kind="changed").order_by("version").values_list("version", "old")
    )
    assert [version for version, _old in versions] == list(range(2, 22))


@pytest.mark.django_db(transaction=True)
def test_commenting_does_not_wait_for_a_change() -> None:
    """A key lock of the foreign key is enough to insert beside the row lock of a change."""
    ticket = TicketFactory()
    from django.db import transaction

    done: list[bool] = []

    def insert_event() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
            TicketEvent.objects.create(ticket=ticket, version=1, kind="commented", via="api")
            done.append(True)
        finally:
            connection.close()

    with transaction.atomic():
        ticket.locked()
        thread = threading.Thread(target=insert_event)
        thread.start()
        thread.join()
    assert done
