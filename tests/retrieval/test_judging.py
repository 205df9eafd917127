"""What a judgement does to a pair, and how it is taken back."""

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone

from retrieval import judging
from retrieval.judging import (
    AlreadyJudged,
    belong_to,
    judge,
    judged_with,
    merge,
    open_candidates,
    sort_out_candidates,
    undo,
    unmerge,
)
from retrieval.models import DuplicateCandidate, Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket, TicketEvent, TicketLink

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return UserFactory(agent=True, first_name="Alice")


@pytest.fixture
def pair() -> tuple[Ticket, Ticket]:
    """The newer and the older."""
    older = TicketFactory(title="Older", created_at=timezone.now() - timedelta(days=1))
    newer = TicketFactory(title="Newer", status="open")
    DuplicateCandidate.objects.create(ticket=newer, candidate=older, score=0.9, similarity=0.9, model="m:1")
    return newer, older


def test_same_merges_the_newer_into_the_older_whoever_comes_first(
    alice: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    verdict = judge(older, newer, "same", by=alice)
    newer.refresh_from_db()
    assert newer.duplicate_of == older
    assert (verdict.ticket, verdict.candidate, verdict.by) == (newer, older, alice)
    row = DuplicateCandidate.objects.get()
    assert (row.state, row.judgement, row.decided_by) == ("decided", "same", alice)


def test_related_links_both_with_history_on_both_sides(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    judge(newer, older, "related", by=alice)
    assert list(newer.related()) == [older]
    assert list(older.related()) == [newer]
    events = TicketEvent.objects.filter(kind="linked", actor=alice)
    assert {event.ticket_id for event in events} == {newer.pk, older.pk}


def test_different_changes_neither(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    judge(newer, older, "different", by=alice)
    assert not TicketEvent.objects.exclude(kind="created").exists()
    assert judged_with(newer.pk) == {older.pk}
    assert judged_with(older.pk) == {newer.pk}
    assert not open_candidates().exists()


@pytest.mark.parametrize("judgement", ["same", "related", "different"])
def test_undo_restores_everything(alice: User, pair: tuple[Ticket, Ticket], judgement: str) -> None:
    newer, older = pair
    undo(judge(newer, older, judgement, by=alice), by=alice)
    newer.refresh_from_db()
    assert (newer.status, newer.duplicate_of) == ("open", None)
    assert not Verdict.objects.exists()
    assert not TicketLink.objects.exists()
    assert [row.state for row in open_candidates()] == ["open"]


def states() -> list[str]:
    sort_out_candidates()
    return list(DuplicateCandidate.objects.values_list("state", flat=True))


def test_a_pair_is_set_aside_while_its_newer_ticket_is_solved(
    alice: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    older.change(by=alice, via="admin", status="resolved")
    assert states() == ["open"]  # a regression, to be judged
    newer.change(by=alice, via="admin", status="resolved")
    assert states() == ["aside"]
    newer.change(by=alice, via="admin", status="open")
    assert states() == ["open"]


@pytest.mark.parametrize("which", [0, 1])
def test_a_pair_is_set_aside_while_either_is_merged(
    alice: User, pair: tuple[Ticket, Ticket], which: int
) -> None:
    pair[which].merge_into(TicketFactory(), alice)
    assert states() == ["aside"]
    pair[which].unmerge(alice)
    assert states() == ["open"]


def test_a_judged_pair_is_never_moved(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    verdict = judge(*pair, "same", by=alice)
    assert states() == ["decided"]
    undo(verdict, by=alice)
    assert states() == ["open"]


def test_pairs_set_aside_can_be_judged(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    pair[0].change(by=alice, via="admin", status="resolved")
    assert states() == ["aside"]
    judge(*pair, "different", by=alice)
    assert states() == ["decided"]


def test_any_number_of_pairs_is_sorted_out(
    alice: User, pair: tuple[Ticket, Ticket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "SORTED_AT_ONCE", 2)
    for other in TicketFactory.create_batch(4):
        DuplicateCandidate.objects.create(ticket=pair[0], candidate=other, score=0.9, model="m:1")
    pair[0].change(by=alice, via="admin", status="closed")
    assert sort_out_candidates() == 5
    assert sort_out_candidates() == 0


def test_undo_twice_is_told(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    verdict = judge(*pair, "different", by=alice)
    again = Verdict.objects.get(pk=verdict.pk)
    undo(verdict, by=alice)
    with pytest.raises(ValidationError, match="undone already"):
        undo(again, by=alice)


def test_undo_after_somebody_else_has_unmerged(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    verdict = judge(newer, older, "same", by=alice)
    newer.refresh_from_db()
    newer.unmerge(alice)
    undo(verdict, by=alice)
    assert open_candidates().count() == 1


def test_the_second_judge_is_told_who_was_faster(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    judge(*pair, "different", by=alice)
    with pytest.raises(AlreadyJudged, match="Alice has already judged"):
        judge(*pair, "same", by=UserFactory(agent=True))
    assert Verdict.objects.count() == 1


def test_a_double_click_is_one_judgement(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    assert judge(*pair, "same", by=alice) == judge(*pair, "same", by=alice)
    assert TicketEvent.objects.filter(kind="merged").count() == 1


def test_an_impossible_merge_leaves_no_verdict(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    older.merge_into(newer, alice)
    with pytest.raises(ValidationError, match="itself a duplicate"):
        judge(newer, older, "same", by=alice)
    assert not Verdict.objects.exists()


def test_needs_the_permission_to_change(pair: tuple[Ticket, Ticket]) -> None:
    reader = UserFactory(is_staff=True, permissions=["view_ticket"])
    with pytest.raises(PermissionDenied):
        judge(*pair, "different", by=reader)


def test_not_related_to_itself(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    with pytest.raises(ValidationError):
        pair[0].link_to(pair[0], alice)


def test_what_was_told_apart_before_the_ticket_existed(alice: User, pair: tuple[Ticket, Ticket]) -> None:
    newer, older = pair
    began = timezone.now() - timedelta(minutes=5)
    verdict = Verdict.objects.create(candidate=older, judgement="different", by=alice)
    Verdict.objects.create(candidate=older, judgement="different", by=UserFactory())
    Verdict.objects.create(candidate=older, judgement="same", by=alice)
    assert belong_to(newer, [older.pk], by=alice, since=began) == 1
    verdict.refresh_from_db()
    assert verdict.ticket == newer
    assert judged_with(newer.pk) == {older.pk}


def test_undoing_the_merge_on_the_ticket_takes_the_judgement_back(
    client: Client, alice: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    judge(newer, older, "same", by=alice)
    client.force_login(alice)
    address = f"/admin/tickets/ticket/{newer.pk}/unmerge/"
    client.get(address)
    assert Verdict.objects.count() == 1
    client.post(address)
    assert not Verdict.objects.exists()
    assert open_candidates().count() == 1


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_merge_by_number_is_a_judgement_in_the_direction_of_the_person(
    client: Client, alice: User, pair: tuple[Ticket, Ticket], newer_first: bool
) -> None:
    duplicate, target = pair if newer_first else pair[::-1]
    client.force_login(alice)
    client.post(f"/admin/tickets/ticket/{duplicate.pk}/merge/", {"target": f"#{target.pk}"})
    duplicate.refresh_from_db()
    assert duplicate.duplicate_of == target
    verdict = Verdict.objects.get()
    assert (verdict.ticket, verdict.candidate) == pair
    assert (verdict.judgement, verdict.by, verdict.suggested) == ("same", alice, True)
    row = DuplicateCandidate.objects.get()
    assert (row.state, row.judgement, row.decided_by) == ("decided", "same", alice)
    with pytest.raises(AlreadyJudged):
        judge(*pair, "different", by=UserFactory(agent=True))
    undo(verdict, by=alice)
    duplicate.refresh_from_db()
    assert duplicate.duplicate_of_id is None
    assert open_candidates().count() == 1


def test_a_merge_of_what_nothing_had_suggested_says_so(alice: User) -> None:
    one, other = TicketFactory(), TicketFactory()
    merge(other, one, by=alice)
    assert not Verdict.objects.get().suggested
    assert judged_with(one.pk) == {other.pk}


def test_a_merge_by_number_overrules_and_its_undo_restores_what_was_said_before(
    alice: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    judge(newer, older, "different", by=alice)
    merge(newer, older, by=alice)
    assert DuplicateCandidate.objects.get().judgement == "same"
    unmerge(newer, by=alice)
    row = DuplicateCandidate.objects.get()
    assert (row.state, row.judgement) == ("decided", "different")
    assert not open_candidates().exists()


def test_undoing_a_merge_leaves_the_judgements_of_other_merges_alone(
    alice: User, pair: tuple[Ticket, Ticket]
) -> None:
    newer, older = pair
    end = TicketFactory()
    merge(older, newer, by=alice)
    newer.refresh_from_db()
    merge(newer, end, by=alice)
    newer.refresh_from_db()
    unmerge(newer, by=alice)
    assert [(one.ticket, one.candidate) for one in Verdict.objects.all()] == [(newer, older)]
    older.refresh_from_db()
    assert older.duplicate_of == newer


def test_many_merges_at_once_are_judgements_too(client: Client, alice: User) -> None:
    target, *others = TicketFactory.create_batch(3)
    client.force_login(alice)
    form = {"ids": ",".join(str(one.pk) for one in others), "target": str(target.pk)}
    page = client.post("/admin/tickets/ticket/many/merge/", form)
    client.post(page["Location"])
    assert judged_with(target.pk) == {one.pk for one in others}


@pytest.mark.django_db(transaction=True)
def test_two_judges_at_once_one_verdict() -> None:
    older = TicketFactory(created_at=timezone.now() - timedelta(days=1))
    newer = TicketFactory()
    outcomes: list[str] = []

    def decide(judgement: str, by: User) -> None:
        try:
            judge(newer, older, judgement, by=by)
            outcomes.append("done")
        except AlreadyJudged:
            outcomes.append("told")
        finally:
            close_old_connections()
            from django.db import connection

            connection.close()

    people = [UserFactory(agent=True) for _ in range(3)]
    threads = [
        threading.Thread(target=decide, args=(judgement, by))
        for judgement, by in zip(["same", "different", "related"], people, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "told", "told"]
    assert Verdict.objects.count() == 1
