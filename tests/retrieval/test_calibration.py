"""Bounds by alert rate, and what is stored of them."""

from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from retrieval.calibration import (
    FEWEST_VERDICTS,
    FLOOR_ALERT_RATE,
    LIKELY_ALERT_RATE,
    SAMPLE,
    bounds,
    calibrate_first,
    precision,
    sample,
)
from retrieval.embedders import get_embedder, model_key
from retrieval.models import IndexState, SearchLog, SearchProfile, TicketEmbedding, Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

PROBLEMS = ["Printer jams", "VPN drops", "Outlook asks for the password", "Excel crashes", "Badge is refused"]


def test_bounds_give_the_wanted_alert_rates() -> None:
    random = np.random.default_rng(1)
    texts = random.normal(size=(200, 16)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    found = bounds(texts, texts)
    similarities = texts @ texts.T
    np.fill_diagonal(similarities, -1)
    nearest = similarities.max(axis=1)
    assert np.mean(nearest >= found.floor) == pytest.approx(FLOOR_ALERT_RATE, abs=0.01)
    assert np.mean(nearest >= found.likely) == pytest.approx(LIKELY_ALERT_RATE, abs=0.01)


def test_a_ticket_is_not_its_own_neighbour() -> None:
    apart = np.eye(30, dtype=np.float32)
    found = bounds(apart, apart)
    assert (found.floor, found.likely) == (0.0, 0.0)


@pytest.mark.parametrize("size", [0, 1, 299, 300, 301, 10_000])
def test_the_sample_is_bounded_and_spread(size: int) -> None:
    places = sample(size)
    assert len(places) == min(size, SAMPLE)
    assert len(set(places)) == len(places)
    if size:
        assert (places[0], places[-1]) == (0, size - 1)


def test_precision_counts_what_stood_out() -> None:
    assert precision([(0.9, True), (0.8, True), (0.7, False), (0.2, False)], likely=0.6) == pytest.approx(
        2 / 3
    )
    assert precision([(0.2, True)], likely=0.6) is None


def index(tickets: list[Ticket]) -> None:
    embedder = get_embedder()
    vectors = embedder.embed_documents([f"{ticket.title}\n{ticket.description}" for ticket in tickets])
    for ticket, vector in zip(tickets, vectors, strict=True):
        TicketEmbedding.objects.create(ticket=ticket, model=model_key(embedder), embedding=vector)


def calibrated() -> tuple[SearchProfile, str]:
    output = StringIO()
    call_command("calibrate_search", stdout=output)
    return SearchProfile.objects.get(), output.getvalue()


@pytest.mark.django_db
def test_the_command_stores_the_bounds_and_from_how_many_tickets() -> None:
    index(
        [TicketFactory(title=f"{problem} in room {room}") for problem in PROBLEMS for room in range(101, 106)]
    )
    profile, output = calibrated()
    assert profile.is_calibrated
    assert profile.calibrated_tickets == 25
    assert profile.floor is not None
    assert profile.likely is not None
    assert 0 < profile.floor < profile.likely <= 1
    assert profile.precision is None
    assert "people have judged 0 hits so far" in output


@pytest.mark.django_db
def test_with_enough_verdicts_precision_is_reported() -> None:
    tickets = [
        TicketFactory(title=f"{problem} {number}") for problem in PROBLEMS for number in range(101, 106)
    ]
    index(tickets)
    log = SearchLog.objects.create(
        text="printer",
        outcome="found",
        model=model_key(get_embedder()),
        hits=[{"id": tickets[0].pk, "similarity": 0.99}, {"id": tickets[1].pk, "similarity": 0.999}],
    )
    user = UserFactory()
    for number in range(FEWEST_VERDICTS):
        same = number % 3 != 0
        Verdict.objects.create(
            search=log,
            candidate=tickets[0 if same else 1],
            judgement=Verdict.Judgement.SAME if same else Verdict.Judgement.DIFFERENT,
            by=user,
        )
    profile, output = calibrated()
    assert profile.precision == pytest.approx(2 / 3)
    assert "67%" in output


@pytest.mark.django_db
def test_too_few_tickets_are_refused_with_what_to_do() -> None:
    TicketFactory()
    with pytest.raises(CommandError, match="embed_worker"):
        call_command("calibrate_search", stdout=StringIO())
    assert not SearchProfile.objects.exists()


@pytest.mark.django_db
def test_the_first_calibration_waits_for_a_complete_index_and_happens_once() -> None:
    embedder = get_embedder()
    index(
        [TicketFactory(title=f"{problem} in room {room}") for problem in PROBLEMS for room in range(101, 106)]
    )
    assert not calibrate_first(embedder)
    assert not SearchProfile.objects.exists()
    IndexState.objects.create(model=model_key(embedder), total=25, indexed=25, completed_at=timezone.now())
    assert calibrate_first(embedder)
    first = SearchProfile.objects.get()
    assert first.is_calibrated
    assert first.evidence
    assert calibrate_first(embedder)
    assert SearchProfile.objects.get().calibrated_at == first.calibrated_at


@pytest.mark.django_db
def test_the_worker_calibrates_when_everything_is_embedded() -> None:
    for problem in PROBLEMS:
        for room in range(101, 106):
            TicketFactory(title=f"{problem} in room {room}")
    call_command("embed_worker", "--once", stdout=StringIO())
    assert SearchProfile.objects.get().calibrated_tickets == 25


@pytest.mark.django_db
def test_a_model_over_the_network_is_calibrated_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = get_embedder()
    index(
        [TicketFactory(title=f"{problem} in room {room}") for problem in PROBLEMS for room in range(101, 106)]
    )
    IndexState.objects.create(model=model_key(embedder), total=25, indexed=25, completed_at=timezone.now())
    calls: list[str] = []
    monkeypatch.setattr(embedder, "remote", True)
    monkeypatch.setattr(embedder, "embed_query", calls.append)
    assert calibrate_first(embedder)
    assert SearchProfile.objects.get().is_calibrated
    assert calls == []
