"""The check that a ticket gets with its first vector: what it proposes, to whom it owes nothing, and that
neither a crash nor a failure loses it."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval import duplicates, neighbours
from retrieval.embedders import get_embedder
from retrieval.judging import judge, open_candidates
from retrieval.models import DuplicateCandidate, DuplicateCheck, IndexState, SearchProfile
from retrieval.neighbours import similar_to
from retrieval.results import Band, Outcome
from retrieval.triage.inbox import waiting
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket, TicketEvent

pytestmark = pytest.mark.django_db

MODEL = "use-multilingual-3:512"
PRINTER = ("Printer on floor 2 does not print", "Nothing comes out of the printer near the kitchen.")
DRUCKER = ("Drucker im 2. Stock druckt nicht", "Aus dem Drucker bei der Küche kommt nichts heraus.")


def embed() -> None:
    call_command("embed_worker", "--once", verbosity=0)


def make(pair: tuple[str, str], **given: Any) -> Ticket:
    return TicketFactory(title=pair[0], description=pair[1], **given)


@pytest.fixture
def profile() -> SearchProfile:
    """Bounds as they are found for this model."""
    return SearchProfile.objects.create(model=MODEL, floor=0.35, likely=0.6, calibrated_at=timezone.now())


@pytest.fixture
def other_problems(profile: SearchProfile) -> None:
    TicketFactory(title="Parking permit", description="How do I get a permit for the car park?")
    TicketFactory(title="VPN drops", description="The tunnel disconnects every few minutes.")


def pairs() -> set[tuple[int, int]]:
    return set(DuplicateCandidate.objects.values_list("ticket_id", "candidate_id"))


@pytest.mark.parametrize("source", ["chat", "admin", "api", "import"])
def test_a_new_ticket_is_proposed_beside_the_older_one_whatever_its_source(
    other_problems: None, source: str
) -> None:
    older = make(PRINTER)
    embed()
    newer = make(DRUCKER, source=source)
    embed()
    assert (newer.pk, older.pk) in pairs()
    row = DuplicateCandidate.objects.get(ticket=newer, candidate=older)
    assert row.likely
    assert row.similarity is not None
    assert row.similarity > 0.6
    assert "meaning" in row.matched
    assert newer.vector_check.found >= 1


def test_both_new_at_once_are_one_pair(profile: SearchProfile) -> None:
    older, newer = make(PRINTER), make(DRUCKER)
    embed()
    assert pairs() == {(newer.pk, older.pk)}


def test_an_older_ticket_whose_vector_comes_late_is_found_as_well(profile: SearchProfile) -> None:
    newer = make(PRINTER)
    embed()
    older = make(DRUCKER, created_at=timezone.now() - timedelta(days=1))
    embed()
    assert pairs() == {(newer.pk, older.pk)}


def test_nothing_below_the_floor(other_problems: None) -> None:
    embed()
    make(("Beamer im Raum Elbe flackert", "Das Bild ist blau und springt."))
    embed()
    assert not DuplicateCandidate.objects.filter(similarity__lt=0.35).exists()


def test_a_bounded_number_for_each(profile: SearchProfile) -> None:
    for number in range(6):
        make((f"{PRINTER[0]} ({number} pages)", PRINTER[1]))
    embed()
    newest = make(DRUCKER)
    embed()
    assert DuplicateCandidate.objects.filter(ticket=newest).count() == duplicates.PER_TICKET


def test_every_ticket_once(other_problems: None) -> None:
    make(PRINTER)
    make(DRUCKER)
    embed()
    before = pairs()
    Ticket.objects.filter(title=DRUCKER[0]).update(description="Noch immer nichts.")
    embed()
    assert pairs() == before
    assert not duplicates.due_checks().exists()


def test_solved_tickets_and_old_ones_are_not_checked(profile: SearchProfile) -> None:
    make(PRINTER)
    make(DRUCKER, status="resolved")
    make(DRUCKER, created_at=timezone.now() - timedelta(days=90))
    embed()
    assert DuplicateCheck.objects.count() == 1


def test_a_solved_older_ticket_is_proposed(profile: SearchProfile) -> None:
    """It may be back."""
    solved = make(PRINTER, status="resolved", resolution="New toner.")
    newer = make(DRUCKER)
    embed()
    assert pairs() == {(newer.pk, solved.pk)}


def test_a_merged_ticket_leads_to_the_one_it_stands_for(profile: SearchProfile) -> None:
    alice = UserFactory(agent=True)
    target = TicketFactory(title="Second floor out of order", description="See the incident page.")
    make(PRINTER).merge_into(target, alice)
    newer = make(DRUCKER)
    embed()
    assert (newer.pk, target.pk) in pairs()


def test_what_has_been_judged_is_not_proposed(profile: SearchProfile) -> None:
    older, newer = make(PRINTER), make(DRUCKER)
    judge(newer, older, "different", by=UserFactory(agent=True))
    embed()
    assert pairs() == set()


def test_a_ticket_created_while_search_was_unavailable_is_made_good(profile: SearchProfile) -> None:
    older = make(PRINTER)
    newer = make(DRUCKER, duplicate_check="unavailable", created_at=timezone.now() - timedelta(days=90))
    embed()
    newer.refresh_from_db()
    assert newer.duplicate_check == "searched"
    assert TicketEvent.objects.filter(ticket=newer, field="duplicate_check", via="system").exists()
    assert {frozenset(pair) for pair in pairs()} == {frozenset((older.pk, newer.pk))}


def test_without_a_complete_index_checks_wait(profile: SearchProfile) -> None:
    make(PRINTER)
    make(DRUCKER)
    embed()
    DuplicateCandidate.objects.all().delete()
    DuplicateCheck.objects.update(checked_at=None)
    IndexState.objects.update(completed_at=None)
    assert duplicates.check_due_tickets(get_embedder()) is False
    assert duplicates.due_checks().count() == 2
    assert pairs() == set()


def test_a_check_that_fails_says_so_and_comes_back(
    profile: SearchProfile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("out of luck")

    older, newer = make(PRINTER), make(DRUCKER)
    with monkeypatch.context() as patch:
        patch.setattr(duplicates, "compare", broken)
        embed()
    assert pairs() == set()
    assert set(DuplicateCheck.objects.values_list("checked_at", "error")) == {(None, duplicates.FAILED)}
    DuplicateCheck.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    embed()
    assert pairs() == {(newer.pk, older.pk)}
    assert not DuplicateCheck.objects.exclude(error="").exists()


def test_uncalibrated_with_few_tickets_only_the_nearest_and_never_likely() -> None:
    for number in range(4):
        make((f"{PRINTER[0]} ({number} pages)", PRINTER[1]))
    embed()
    newest = make(DRUCKER)
    embed()
    assert [row.likely for row in DuplicateCandidate.objects.filter(ticket=newest)] == [False]


def test_uncalibrated_with_enough_tickets_the_vectors_themselves_give_the_bounds() -> None:
    neighbours.sampled_bounds.cache_clear()
    corpus = json.loads(Path("tests/data/crosslingual.json").read_text())["tickets"]
    for other in corpus[:: max(1, len(corpus) // 25)][:25]:
        TicketFactory(title=other["title"], description=other["description"])
    older = make(PRINTER)
    embed()
    newer = make(DRUCKER)
    embed()
    neighbours.sampled_bounds.cache_clear()
    assert DuplicateCandidate.objects.get(ticket=newer, candidate=older).likely


def test_the_inbox_forgets_what_was_merged_or_solved_elsewhere(profile: SearchProfile) -> None:
    older, newer = make(PRINTER), make(DRUCKER)
    alice = UserFactory(agent=True)
    embed()
    newer.merge_into(older, alice)
    assert not open_candidates().exists()
    newer.unmerge(alice)
    assert open_candidates().count() == 1
    newer.change(by=alice, via="admin", status="resolved")
    assert not open_candidates().exists()


def test_a_check_costs_a_bounded_number_of_queries(profile: SearchProfile) -> None:
    for number in range(4):
        make((f"{PRINTER[0]} ({number} pages)", PRINTER[1]))
    embed()
    newest = make(DRUCKER)
    embed()
    DuplicateCheck.objects.filter(pk=newest.pk).update(checked_at=None)
    with CaptureQueriesContext(connection) as queries:
        duplicates.check_due_tickets(get_embedder())
    assert len(queries) <= 25, [query["sql"][:90] for query in queries]


# -- the neighbours of a ticket, as its page shows them ------------------------------------------------------


def test_similar_tickets_without_a_call_to_the_provider(voyage: Any) -> None:
    older, newer = make(PRINTER), make(PRINTER)
    embed()
    asked = len(voyage.requests)
    outcome = similar_to(newer, user=UserFactory(agent=True), exclude=set(), limit=5)
    assert outcome.outcome == Outcome.FOUND
    assert [hit.ticket for hit in outcome.hits] == [older]
    assert len(voyage.requests) == asked


def test_the_best_first_with_its_band(other_problems: None) -> None:
    older, newer = make(PRINTER), make(DRUCKER)
    embed()
    outcome = similar_to(newer, user=UserFactory(agent=True), exclude=set(), limit=5)
    assert outcome.hits[0].ticket == older
    assert outcome.hits[0].band == Band.LIKELY


def test_a_ticket_that_waits_for_its_vector_says_so(profile: SearchProfile) -> None:
    make(PRINTER)
    embed()
    newer = make(DRUCKER)
    outcome = similar_to(newer, user=UserFactory(agent=True), exclude=set(), limit=5)
    assert (outcome.outcome, outcome.reason_code) == (Outcome.UNAVAILABLE, "ticket_waiting")
    assert "not indexed yet" in outcome.reason


def test_switched_off_search_says_so(settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    outcome = similar_to(make(PRINTER), user=UserFactory(agent=True), exclude=set(), limit=5)
    assert outcome.outcome == Outcome.UNAVAILABLE
    assert outcome.reason


def test_nobody_sees_neighbours_without_the_permission(profile: SearchProfile) -> None:
    make(PRINTER)
    newer = make(DRUCKER)
    embed()
    assert similar_to(newer, user=UserFactory(is_staff=True), exclude=set(), limit=5).hits == ()


def test_the_demo_shows_what_the_inbox_is_for(settings: Any) -> None:
    """Reports that stand a second time, in the other language, come before all that is merely close."""
    settings.TRIAL = True
    call_command("seed_demo", verbosity=0)
    embed()
    first = {frozenset((pair.ticket.title, pair.candidate.title)) for pair in waiting()[:6]}
    assert first == {
        frozenset(twins)
        for twins in (
            ("VPN bricht im Homeoffice alle zwanzig Minuten ab", "VPN drops every twenty minutes"),
            (
                "Docking station does not detect the second monitor",
                "Dockingstation erkennt den zweiten Monitor nicht",
            ),
            (
                "Beim Weiterverbinden hören die Anrufer nichts mehr",
                "Callers hear nothing when I transfer them",
            ),
            (
                "Invoice verification ends with DBIF_RSQL_SQL_ERROR",
                "Rechnungsprüfung bricht mit DBIF_RSQL_SQL_ERROR ab",
            ),
            (
                "Customer service queue no longer distributes the calls",
                "Warteschleife des Kundendienstes verteilt Anrufe nicht mehr",
            ),
            (
                "Gescannte Seiten kommen als leerer Anhang in meinem Postfach an",
                "Scans to my own mailbox end up as empty attachments",
            ),
        )
    }
