import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import ProtectedError
from django.utils import timezone

from tests.factories import TicketFactory, UserFactory
from tickets.models import Comment, Ticket

pytestmark = pytest.mark.django_db


def row(ticket: Ticket) -> dict[str, Any]:
    """What must be the same again after merge and unmerge."""
    stored = Ticket.objects.values().get(pk=ticket.pk)
    return {name: value for name, value in stored.items() if name not in ("version", "updated_at")}


def test_closes_the_duplicate_and_points_it_at_the_target(alice: User) -> None:
    target, duplicate = TicketFactory(title="First"), TicketFactory(title="Second")
    before = row(target)
    duplicate.merge_into(target, by=alice)
    assert (duplicate.status, duplicate.duplicate_of_id, duplicate.version) == ("closed", target.pk, 2)
    assert duplicate.resolved_at is not None
    assert row(target) == before


def test_history_on_both_sides(alice: User) -> None:
    target, duplicate = TicketFactory(title="First"), TicketFactory(title="Second")
    duplicate.merge_into(target, by=alice, via="chat")
    duplicate.unmerge(by=alice)
    assert list(duplicate.events.values_list("kind", "old_ref", "new_ref", "via"))[1:] == [
        ("merged", None, target.pk, "chat"),
        ("unmerged", target.pk, None, "admin"),
    ]
    assert list(target.events.values_list("kind", "old", "new", "actor"))[1:] == [
        ("duplicate_added", "", f"#{duplicate.pk} Second", alice.pk),
        ("duplicate_removed", f"#{duplicate.pk} Second", "", alice.pk),
    ]


@pytest.mark.parametrize("status", ["new", "open", "pending", "resolved", "closed"])
def test_unmerge_restores_exactly(alice: User, status: str) -> None:
    moment = timezone.now() - timedelta(days=9, microseconds=7)
    duplicate = TicketFactory(status=status, resolved_at=moment if status in ("resolved", "closed") else None)
    before = row(duplicate)
    duplicate.merge_into(TicketFactory(), by=alice)
    if before["resolved_at"]:
        assert duplicate.resolved_at == moment
    duplicate.unmerge(by=alice)
    assert row(duplicate) == before


def test_other_changes_meanwhile_survive_the_unmerge(alice: User) -> None:
    duplicate = TicketFactory()
    duplicate.merge_into(TicketFactory(), by=alice)
    duplicate.change(by=alice, via="admin", title="Better title")
    duplicate.unmerge(by=alice)
    assert (Ticket.objects.get(pk=duplicate.pk).title, duplicate.status) == ("Better title", "new")


def test_the_status_of_a_duplicate_is_that_of_the_merge(alice: User) -> None:
    duplicate = TicketFactory()
    duplicate.merge_into(TicketFactory(), by=alice)
    with pytest.raises(ValidationError, match="Undo the merge"):
        duplicate.change(by=alice, via="admin", status="open")


def test_not_into_itself(alice: User) -> None:
    ticket = TicketFactory()
    with pytest.raises(ValidationError, match="into itself"):
        ticket.merge_into(ticket, by=alice)


def test_not_twice(alice: User) -> None:
    duplicate, target, other = TicketFactory(), TicketFactory(), TicketFactory()
    duplicate.merge_into(target, by=alice)
    for again in (target, other):
        with pytest.raises(ValidationError, match=f"already a duplicate of #{target.pk}"):
            duplicate.merge_into(again, by=alice)


def test_not_in_a_circle(alice: User) -> None:
    a, b, c = TicketFactory(), TicketFactory(), TicketFactory()
    a.merge_into(b, by=alice)
    b.merge_into(c, by=alice)
    for end in (a, b):
        with pytest.raises(ValidationError, match="itself a duplicate"):
            c.merge_into(end, by=alice)
    assert Ticket.objects.get(pk=c.pk).duplicate_of is None


def test_a_target_that_is_a_duplicate_is_followed_to_the_end(alice: User) -> None:
    a, b, c, d = (TicketFactory() for _ in range(4))
    a.merge_into(b, by=alice)
    b.merge_into(c, by=alice)
    d.merge_into(a, by=alice)
    assert d.duplicate_of == c
    assert {ticket.chain_end() for ticket in (a, b, c, d)} == {c}


def test_undoing_in_the_middle_keeps_the_rest_of_the_chain(alice: User) -> None:
    a, b, c = (TicketFactory() for _ in range(3))
    a.merge_into(b, by=alice)
    b.merge_into(c, by=alice)
    b.unmerge(by=alice)
    assert set(a.whole_chain()) == {a, b}
    assert set(c.whole_chain()) == {c}


def test_unmerge_of_what_is_not_merged(alice: User) -> None:
    with pytest.raises(ValidationError, match="not a duplicate"):
        TicketFactory().unmerge(by=alice)


def test_into_a_deleted_ticket(alice: User) -> None:
    target, duplicate = TicketFactory(), TicketFactory()
    Ticket.objects.filter(pk=target.pk).delete()
    with pytest.raises(ValidationError, match="deleted"):
        duplicate.merge_into(target, by=alice)
    assert row(duplicate)["duplicate_of_id"] is None


def test_a_target_cannot_be_deleted_under_its_duplicates(alice: User) -> None:
    target, duplicate = TicketFactory(), TicketFactory()
    duplicate.merge_into(target, by=alice)
    with pytest.raises(ProtectedError):
        target.delete()


def test_one_thread_for_the_whole_chain(alice: User) -> None:
    a, b = TicketFactory(), TicketFactory()
    first = a.add_comment(by=alice, body="on a", internal=True, via="admin")
    second = b.add_comment(by=alice, body="on b", internal=False, via="admin")
    a.merge_into(b, by=alice)
    assert list(a.thread()) == list(b.thread()) == [first, second]
    a.unmerge(by=alice)
    assert list(a.thread()) == [first]
    assert list(b.thread()) == [second]


def test_internal_notes_stay_internal_and_where_they_are(alice: User) -> None:
    a, b = TicketFactory(), TicketFactory()
    a.add_comment(by=alice, body="secret", internal=True, via="admin")
    before = list(Comment.objects.values())
    a.merge_into(b, by=alice)
    assert [comment.internal for comment in b.thread()] == [True]
    a.unmerge(by=alice)
    assert list(Comment.objects.values()) == before


def test_a_comment_on_a_duplicate_reaches_the_end(alice: User) -> None:
    a, b, c = (TicketFactory() for _ in range(3))
    a.merge_into(b, by=alice)
    b.merge_into(c, by=alice)
    assert a.add_comment(by=alice, body="me too", internal=False, via="chat").ticket == c


def concurrently(*actions: Callable[[], object]) -> list[str]:
    """Run the actions at once in threads; the sentences with which some were refused."""
    start = threading.Barrier(len(actions))
    refused: list[str] = []

    def run(action: Callable[[], object]) -> None:
        try:
            start.wait()
            action()
        except ValidationError as error:
            refused.extend(error.messages)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return refused


def merging(source: Ticket, target: Ticket, by: User) -> Callable[[], None]:
    return lambda: Ticket.objects.get(pk=source.pk).merge_into(Ticket.objects.get(pk=target.pk), by=by)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt", range(3))
def test_concurrent_merges_of_each_other_make_no_circle(attempt: int) -> None:
    agent = UserFactory(agent=True)
    a, b = TicketFactory(), TicketFactory()
    refused = concurrently(merging(a, b, agent), merging(b, a, agent))
    assert len(refused) == 1
    assert Ticket.objects.exclude(duplicate_of=None).count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt", range(3))
def test_concurrent_merges_around_a_ring_make_no_circle(attempt: int) -> None:
    agent = UserFactory(agent=True)
    a, b, c = (TicketFactory() for _ in range(3))
    refused = concurrently(merging(a, b, agent), merging(b, c, agent), merging(c, a, agent))
    assert len(refused) == 1
    assert Ticket.objects.filter(duplicate_of=None).count() == 1
    assert len({ticket.chain_end().pk for ticket in Ticket.objects.all()}) == 1


@pytest.mark.django_db(transaction=True)
def test_one_ticket_merged_into_two_at_once_goes_into_one() -> None:
    agent = UserFactory(agent=True)
    a, b, c = (TicketFactory() for _ in range(3))
    refused = concurrently(merging(a, b, agent), merging(a, c, agent))
    assert len(refused) == 1
    assert "already a duplicate" in refused[0]
    assert Ticket.objects.get(pk=a.pk).events.filter(kind="merged").count() == 1
