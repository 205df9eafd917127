"""The worker's steps against a strict provider over HTTP and the real database, in one process."""

from collections.abc import Iterator
from datetime import timedelta
from time import monotonic
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from retrieval import worker as worker_module
from retrieval.bookkeeping import COUNT_INDEX
from retrieval.embedders import EmbeddingError, get_embedder, model_key
from retrieval.embedders.local import LocalEmbedder
from retrieval.models import DuplicateCandidate, IndexState, TicketEmbedding, WorkerState
from retrieval.queue import CLAIM, STALE, merging
from retrieval.search import find_similar
from retrieval.worker import Pauses, Worker
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import Fault, VoyageServer, vector_of
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

MODEL = "voyage-4:256"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "FIRST_PAUSE", 0.05)


@pytest.fixture
def worker(voyage: VoyageServer) -> Iterator[Worker]:
    made = Worker(get_embedder(), batch_size=8, concurrency=2, poll_seconds=0.1)
    yield made
    made.finish()


def tickets(count: int, **fields: Any) -> list[Ticket]:
    reporter = UserFactory()
    return [TicketFactory(title=f"Ticket number {n}", reporter=reporter, **fields) for n in range(count)]


def work(worker: Worker, most: int = 200) -> None:
    """Steps until nothing is left to do."""
    for _ in range(most):
        if not worker.step():
            return
    raise AssertionError("the worker does not come to an end")


def row(ticket: Ticket) -> TicketEmbedding:
    return TicketEmbedding.objects.get(ticket=ticket, model=MODEL)


def same_vector(ticket: Ticket, expected: list[float]) -> bool:
    stored = row(ticket).embedding
    return stored is not None and np.allclose(stored, expected, atol=1e-3)


def is_current(ticket: Ticket) -> bool:
    ticket.refresh_from_db()
    stored = row(ticket)
    return bytes(stored.content_hash) == bytes(ticket.content_hash) and stored.embedding is not None


# -- what is embedded
# --------------------------------------------------------------------------------------------


def test_every_ticket_gets_its_vector_once(worker: Worker, voyage: VoyageServer) -> None:
    made = tickets(30)
    work(worker)
    assert all(is_current(ticket) for ticket in made)
    assert set(voyage.embedded.values()) == {1}
    expected = vector_of("Ticket number 3\n", 256)
    assert same_vector(made[3], expected)
    assert row(made[3]).claimed_until is None
    state = IndexState.objects.get(pk=MODEL)
    assert (state.total, state.indexed, state.failed) == (30, 30, 0)
    assert state.completed_at is not None
    assert state.swept_at is not None


def test_edits_past_the_orm_are_seen(worker: Worker, voyage: VoyageServer) -> None:
    one, two, three = tickets(3)
    work(worker)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tickets_ticket SET title = 'raw' WHERE id = %s", [one.pk])
    Ticket.objects.filter(pk=two.pk).update(description="updated")
    work(worker)
    assert is_current(one)
    assert is_current(two)
    assert voyage.embedded["raw\n"] == voyage.embedded["Ticket number 1\nupdated"] == 1
    assert voyage.embedded["Ticket number 2\n"] == 1
    assert is_current(three)


def test_documents_and_only_they_are_sent_as_documents(worker: Worker, voyage: VoyageServer) -> None:
    tickets(1)
    work(worker)
    assert voyage.requests[0]["input_type"] == "document"
    assert voyage.requests[0]["truncation"] is False
    get_embedder().embed_query("what?")
    assert voyage.requests[-1]["input_type"] == "query"


@pytest.mark.parametrize(("title", "description"), [(" ", "\n\t "), ("🔥🔥", "???\n😀")])
def test_text_without_a_word_is_never_embedded(
    worker: Worker, voyage: VoyageServer, title: str, description: str
) -> None:
    ticket, other = tickets(2)
    Ticket.objects.filter(pk=ticket.pk).update(title=title, description=description)
    work(worker)
    stored = row(ticket)
    assert stored.embedding is None
    assert stored.error == ""
    assert is_current(other)
    assert sum(voyage.embedded.values()) == 1


@pytest.mark.parametrize("text", ["Wort " * 20_000, "x" * 100_000, "漢" * 100_000, "🙂" * 100_000])
def test_long_texts_are_shortened_visibly(worker: Worker, voyage: VoyageServer, text: str) -> None:
    (ticket,) = tickets(1, description=text)
    work(worker)
    stored = row(ticket)
    assert stored.embedding is not None
    assert stored.total_chars == len(ticket.title) + 1 + len(text)
    assert 20_000 < stored.embedded_chars < stored.total_chars
    assert stored.is_shortened


def test_a_long_text_that_the_provider_finds_too_long_is_halved(worker: Worker, voyage: VoyageServer) -> None:
    voyage.rules.append(
        lambda texts: Fault(400, '{"detail": "too many tokens"}') if max(map(len, texts)) > 3_000 else None
    )
    (ticket,) = tickets(1, description="word " * 2_000)
    work(worker)
    assert 2_000 < row(ticket).embedded_chars < 3_000


def test_a_batch_stays_under_the_limit_of_tokens(voyage: VoyageServer) -> None:
    worker = Worker(get_embedder(), batch_size=128)
    tickets(30, description="many words " * 7_000)
    work(worker)
    assert len(voyage.requests) > 1
    assert TicketEmbedding.objects.exclude(embedding=None).count() == 30
    worker.finish()


def test_odd_characters(worker: Worker, voyage: VoyageServer) -> None:
    (ticket,) = tickets(1, description="שלום 🙂 \u200b \x0b tab\t")
    work(worker)
    assert is_current(ticket)


# -- faults of the provider
# ---------------------------------------------------------------------------------------


def break_count(answer: dict[str, Any]) -> None:
    answer["data"].pop()


def shuffle(answer: dict[str, Any]) -> None:
    answer["data"].reverse()


def repeat_index(answer: dict[str, Any]) -> None:
    for item in answer["data"]:
        item["index"] = 0


def shorten(answer: dict[str, Any]) -> None:
    for item in answer["data"]:
        item["embedding"] = item["embedding"][:128]


def put_nan(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"][0] = float("nan")


def put_zero(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"] = [0.0] * len(answer["data"][0]["embedding"])


def put_words(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"] = ["a"] * 256


PASSING = {
    "429 with Retry-After": Fault(429, headers={"Retry-After": "0"}),
    "429 without": Fault(429),
    "500": Fault(500),
    "502 with HTML": Fault(502, "<html>Bad gateway</html>"),
    "200 with HTML": Fault(200, "<html>Welcome</html>"),
    "dropped": Fault(drop=True),
    "wrong count": Fault(change=break_count),
    "repeated index": Fault(change=repeat_index),
    "wrong dimension": Fault(change=shorten),
    "NaN": Fault(change=put_nan),
    "zero vector": Fault(change=put_zero),
    "words for numbers": Fault(change=put_words),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_fault_that_passes_loses_nothing(worker: Worker, voyage: VoyageServer, name: str) -> None:
    made = tickets(5)
    voyage.script(PASSING[name])
    work(worker)
    assert all(is_current(ticket) for ticket in made)
    for number, ticket in enumerate(made):
        assert same_vector(ticket, vector_of(f"Ticket number {number}\n", 256))


def test_a_shuffled_answer_is_put_in_order(worker: Worker, voyage: VoyageServer) -> None:
    made = tickets(5)
    voyage.script(Fault(change=shuffle))
    work(worker)
    assert len(voyage.requests) == 1
    for number, ticket in enumerate(made):
        assert same_vector(ticket, vector_of(f"Ticket number {number}\n", 256))


@pytest.mark.parametrize(
    "name", ["500", "502 with HTML", "200 with HTML", "dropped", "wrong count", "wrong dimension"]
)
def test_a_lasting_fault_pauses_the_worker_and_stores_nothing(
    worker: Worker, voyage: VoyageServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "FIRST_PAUSE", 30.0)
    tickets(5)
    voyage.rules.append(lambda texts: PASSING[name])
    worker.step()
    assert worker.pauses.remaining() > 20
    asked = len(voyage.requests)
    worker.stopping.set()
    worker.step()
    assert len(voyage.requests) == asked
    assert not TicketEmbedding.objects.exclude(embedding=None).exists()
    assert not TicketEmbedding.objects.exclude(error="").exists()
    assert not TicketEmbedding.objects.exclude(claimed_until=None).exists()
    state = WorkerState.objects.get()
    assert state.activity == WorkerState.Activity.PAUSED
    assert state.reason_code in ("provider_down", "provider_bad_answer")


def test_a_refused_key_names_the_setting_and_never_the_key(worker: Worker, voyage: VoyageServer) -> None:
    tickets(2)
    voyage.key = "another"
    worker.step()
    state = WorkerState.objects.get()
    assert state.activity == WorkerState.Activity.PAUSED
    assert state.reason_code == "key_refused"
    assert "VOYAGE_API_KEY" in state.reason
    assert "pa-test-key" not in state.reason


def test_once_ends_with_the_reason_when_the_key_is_refused(voyage: VoyageServer) -> None:
    tickets(2)
    voyage.key = "another"
    with pytest.raises(CommandError, match="VOYAGE_API_KEY"):
        call_command("embed_worker", once=True)
    assert not TicketEmbedding.objects.exclude(claimed_until=None).exists()


def test_an_echoed_key_is_not_passed_on(worker: Worker, voyage: VoyageServer) -> None:
    voyage.script(Fault(400, '{"detail": "bad request by pa-test-key"}'))
    with pytest.raises(EmbeddingError) as caught:
        get_embedder().embed_query("x")
    assert "pa-test-key" not in str(caught.value)


def test_retry_after_is_kept(worker: Worker, voyage: VoyageServer) -> None:
    tickets(1)
    voyage.script(Fault(429, headers={"Retry-After": "120"}))
    worker.step()
    assert 110 < worker.pauses.remaining() <= 120


def test_pairs_are_sorted_out_even_while_the_provider_is_away(
    worker: Worker, voyage: VoyageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "SORT_SECONDS", 0.0)
    voyage.key = "another"
    older, newer = TicketFactory(), TicketFactory()
    DuplicateCandidate.objects.create(ticket=newer, candidate=older, score=0.9, model="m:1")
    worker.step()
    assert worker.pauses.cause
    Ticket.objects.filter(pk=newer.pk).update(status="resolved")
    worker.stopping.set()  # the pause itself need not be waited for
    worker.step()
    assert DuplicateCandidate.objects.get().state == "aside"


def test_pauses_grow_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(worker_module, "monotonic", lambda: now[0])
    monkeypatch.setattr(worker_module, "FIRST_PAUSE", 5.0)
    pauses = Pauses()
    lengths = []
    for _ in range(9):
        lengths.append(pauses.add(EmbeddingError("down", code="provider_down")))
        now[0] += lengths[-1] + 1
    assert lengths == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert pauses.add(EmbeddingError("down", code="provider_down")) == 300
    now[0] += 10
    assert pauses.add(EmbeddingError("down too", code="provider_down")) == 300  # under way at the same time


def test_a_server_that_never_answers(settings: Any, voyage: VoyageServer) -> None:
    settings.EMBED_TIMEOUT_SECONDS = 0.3
    made = tickets(3)
    voyage.script(Fault(hang=True))
    worker = Worker(get_embedder(), batch_size=8)
    work(worker)
    assert all(is_current(ticket) for ticket in made)
    worker.finish()


def test_an_unreachable_provider_and_its_return(worker: Worker, voyage: VoyageServer) -> None:
    made = tickets(3)
    voyage.stop()
    worker.step()
    assert WorkerState.objects.get().reason_code == "provider_down"
    voyage.start()
    work(worker)
    assert all(is_current(ticket) for ticket in made)


# -- a text at fault
# ------------------------------------------------------------------------------------------------


def poisoned_by(fault: Fault) -> Any:
    return lambda texts: fault if any("poison" in text for text in texts) else None


@pytest.mark.parametrize("name", ["500", "NaN", "zero vector", "wrong count", "dropped"])
def test_one_poisonous_text_is_isolated(worker: Worker, voyage: VoyageServer, name: str) -> None:
    made = tickets(8)
    Ticket.objects.filter(pk=made[4].pk).update(title="poison")
    voyage.rules.append(poisoned_by(PASSING[name]))
    work(worker)
    stored = row(made[4])
    assert stored.embedding is None
    assert stored.error
    assert stored.attempts == 1
    assert stored.retry_at is not None
    assert all(is_current(ticket) for ticket in made if ticket != made[4])
    state = IndexState.objects.get(pk=MODEL)
    assert (state.indexed, state.total, state.failed) == (7, 8, 1)
    assert state.completed_at is not None


def test_one_poisonous_text_among_a_thousand(voyage: VoyageServer) -> None:
    reporter = User.objects.create(username="bob")
    long_ago = timezone.now() - timedelta(days=90)  # so that none is checked for duplicates
    titles = ["poison" if n == 613 else f"Ticket {n}" for n in range(1_000)]
    Ticket.objects.bulk_create(
        [Ticket(title=title, reporter=reporter, created_at=long_ago) for title in titles]
    )
    voyage.rules.append(poisoned_by(Fault(400, '{"detail": "this text is not liked"}')))
    worker = Worker(get_embedder(), batch_size=1_000)
    work(worker)
    assert TicketEmbedding.objects.exclude(embedding=None).count() == 999
    assert "not liked" in TicketEmbedding.objects.get(embedding=None).error
    assert len(voyage.requests) < 30
    worker.finish()


def test_retries_come_later_each_time_and_at_once_after_an_edit(worker: Worker, voyage: VoyageServer) -> None:
    (ticket,) = tickets(1)
    Ticket.objects.filter(pk=ticket.pk).update(title="poison")
    voyage.rules.append(poisoned_by(Fault(400, '{"detail": "no"}')))
    for attempt, pause in enumerate((30, 180, 1_200, 3_600, 21_600, 21_600), start=1):
        work(worker)
        stored = row(ticket)
        assert stored.attempts == attempt
        assert abs((stored.retry_at - timezone.now()).total_seconds() - pause) < 5  # type: ignore[operator]
        asked = len(voyage.requests)
        work(worker)
        assert len(voyage.requests) == asked
        TicketEmbedding.objects.update(retry_at=timezone.now() - timedelta(hours=1))
    work(worker)
    Ticket.objects.filter(pk=ticket.pk).update(title="antidote")
    work(worker)
    assert is_current(ticket)
    assert (row(ticket).attempts, row(ticket).error) == (0, "")


# -- changes while under way
# ------------------------------------------------------------------------------------------


def while_under_way(voyage: VoyageServer, change: Any) -> None:
    """Runs `change` once, while the provider thinks about the first batch."""
    changes = [change]

    def rule(texts: Any) -> None:
        if changes:
            changes.pop()()
            connection.close()

    voyage.rules.append(rule)


@pytest.mark.django_db(transaction=True)
def test_edited_while_under_way(worker: Worker, voyage: VoyageServer) -> None:
    made = tickets(4)
    while_under_way(voyage, lambda: Ticket.objects.filter(pk=made[1].pk).update(title="edited"))
    work(worker)
    assert all(is_current(ticket) for ticket in made)
    assert voyage.embedded["edited\n"] == 1
    assert voyage.embedded["Ticket number 2\n"] == 1


@pytest.mark.django_db(transaction=True)
def test_deleted_while_under_way(worker: Worker, voyage: VoyageServer) -> None:
    made = tickets(4)
    while_under_way(voyage, lambda: Ticket.objects.filter(pk=made[1].pk).delete())
    work(worker)
    assert TicketEmbedding.objects.exclude(embedding=None).count() == 3
    assert TicketEmbedding.objects.count() == 3


def test_a_claimed_ticket_is_left_to_its_worker_until_the_lease_ends(
    worker: Worker, voyage: VoyageServer
) -> None:
    made = tickets(3)
    other = Worker(get_embedder(), batch_size=2, lease_seconds=100)
    assert len(other._claim_ids()) == 2
    work(worker)
    assert sum(voyage.embedded.values()) == 1
    assert IndexState.objects.get(pk=MODEL).swept_at is None
    TicketEmbedding.objects.exclude(claimed_until=None).update(
        claimed_until=timezone.now() - timedelta(hours=1)
    )
    work(worker)
    assert all(is_current(ticket) for ticket in made)
    other.finish()


def test_a_live_worker_keeps_all_that_it_has_in_hand(
    worker: Worker, voyage: VoyageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls under way, and the lots of the same claim that wait for one."""
    made = tickets(8)
    other = Worker(get_embedder(), batch_size=8)
    monkeypatch.setattr(other.embedder, "batch_bytes", 40)
    other.step()
    assert other._under_way
    assert other._ready
    TicketEmbedding.objects.exclude(claimed_until=None).update(
        claimed_until=timezone.now() - timedelta(seconds=1)
    )
    monkeypatch.setattr(worker_module, "monotonic", lambda: monotonic() + other._lease_seconds)
    other.step()
    work(worker)
    work(other)
    other.finish()
    assert all(is_current(ticket) for ticket in made)
    assert set(voyage.embedded.values()) == {1}


def test_a_clock_that_was_set_back_does_not_freeze_leases(worker: Worker) -> None:
    made = tickets(3)
    for ticket in made:
        TicketEmbedding.objects.create(
            ticket=ticket, model=MODEL, claimed_until=timezone.now() + timedelta(days=300)
        )
    work(worker)
    assert all(is_current(ticket) for ticket in made)


def test_stop_stores_what_is_under_way_and_gives_back_the_rest(voyage: VoyageServer) -> None:
    voyage.seconds = 0.2
    tickets(40)
    worker = Worker(get_embedder(), batch_size=4, concurrency=2)
    worker.step()
    worker.stopping.set()
    worker.finish()
    stored = TicketEmbedding.objects.exclude(embedding=None).count()
    assert 4 <= stored <= 20
    assert stored == sum(voyage.embedded.values())
    assert not TicketEmbedding.objects.exclude(claimed_until=None).exists()
    assert WorkerState.objects.get().activity == WorkerState.Activity.STOPPED


# -- how it asks the database
# -----------------------------------------------------------------------------------------


def plan_of(cursor: Any, statement: str, **values: Any) -> str:
    cursor.execute("EXPLAIN " + statement, {"model": MODEL, **values})
    return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.parametrize("statement", [STALE, COUNT_INDEX], ids=["sweep", "count"])
def test_all_tickets_are_compared_in_one_pass_whatever_the_statistics_say(statement: str) -> None:
    with merging() as cursor:
        plan = plan_of(cursor, statement, after=0, most=2_000)
    assert "Merge Left Join" in plan or "Merge Right Join" in plan
    assert "Seq Scan on tickets_ticket" not in plan
    assert "Seq Scan on retrieval_ticketembedding" not in plan


def test_claimed_tickets_are_looked_up_one_by_one_whatever_the_statistics_say() -> None:
    with connection.cursor() as cursor:
        plan = plan_of(cursor, CLAIM, ids=[1, 2, 3], lease=60, longest=60)
    assert "(ticket_id = t.id)" in plan.split("CTE taken")[0].split("Index Cond")[-1]


# -- models
# -------------------------------------------------------------------------------------------------------


def test_rows_of_two_models_side_by_side_and_pruned_on_request(settings: Any, voyage: VoyageServer) -> None:
    tickets(5)
    call_command("embed_worker", once=True)
    settings.VOYAGE_DIMENSIONS = 512
    with pytest.raises(CommandError, match="run embed_worker"):
        call_command("embed_worker", prune=True)
    call_command("embed_worker", once=True)
    assert TicketEmbedding.objects.count() == 10
    call_command("embed_worker", prune=True)
    assert set(TicketEmbedding.objects.values_list("model", flat=True)) == {"voyage-4:512"}
    assert set(IndexState.objects.values_list("model", flat=True)) == {"voyage-4:512"}


def test_texts_condensed_in_another_way_are_embedded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches go on with the old vectors until all are made anew."""
    alice = UserFactory(is_staff=True, permissions=["view_ticket"])
    tickets(2)
    call_command("embed_worker", once=True)
    monkeypatch.setattr(LocalEmbedder, "name", "use-multilingual-3+2")
    during = find_similar("Ticket number", user=alice)
    assert (during.outcome, during.model) == ("found", "use-multilingual-3:512")
    call_command("embed_worker", once=True)
    assert TicketEmbedding.objects.filter(model="use-multilingual-3+2:512").count() == 2
    assert find_similar("Ticket number", user=alice).model == "use-multilingual-3+2:512"


def test_switched_off_says_so_and_ends_with_once(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    call_command("embed_worker", once=True)
    assert "EMBEDDING_PROVIDER=local" in capsys.readouterr().out


def test_the_local_model(settings: Any) -> None:
    made = tickets(3)
    call_command("embed_worker", once=True)
    assert TicketEmbedding.objects.filter(model=model_key(get_embedder())).count() == len(made)
