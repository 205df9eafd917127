"""Each thing that can break is broken in turn, and exactly its line shows it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import ProgrammingError, connection
from django.test import Client
from django.utils import timezone

from assistant.models import Conversation, Turn
from retrieval import health
from retrieval.embedders import get_embedder, model_key
from retrieval.health import check
from retrieval.models import (
    DuplicateCheck,
    IndexState,
    SearchLog,
    SearchProfile,
    TicketEmbedding,
    WorkerState,
)
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import VoyageServer
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

PROBLEMS = (
    ("Printer jams", "Tray 2 crumples every second sheet of paper."),
    ("VPN drops every hour", "The tunnel closes and has to be opened by hand."),
    ("Kein Ton im Besprechungsraum", "Die Lautsprecher bleiben stumm, das Mikrofon geht."),
    ("Passwort vergessen", "Nach dem Urlaub komme ich nicht mehr in mein Konto."),
    ("Monitor flickers", "The left screen turns dark for a moment, many times a day."),
    ("Mail arrives late", "Messages from outside take more than an hour to arrive."),
    ("Shared drive is full", "Nobody can save files in the folder of the project."),
    ("Neuer Laptop gewünscht", "Der alte Rechner ist zu langsam für die Auswertungen."),
)


def healthy() -> None:
    """Tickets, vectors, a worker, a calibrated profile and searches as they should be."""
    for title, description in PROBLEMS:
        TicketFactory(title=title, description=description)
    call_command("embed_worker", once=True, verbosity=0)
    # The database's clock stands still within the transaction of a test.
    TicketEmbedding.objects.update(updated_at=timezone.now())
    model = model_key(get_embedder())
    WorkerState.objects.create(name="worker-1", model=model, heartbeat_at=timezone.now())
    SearchProfile.objects.update_or_create(
        model=model,
        defaults={"floor": 0.2, "likely": 0.6, "calibrated_at": timezone.now(), "evidence": "measured"},
    )
    SearchLog.objects.bulk_create(a_search(number) for number in range(60))


def a_search(number: int, **fields: Any) -> SearchLog:
    hits = [{"id": 1, "similarity": 0.5 + number / 1000}] * (number % 3)
    values: dict[str, Any] = {
        "text": f"problem {number}",
        "outcome": "found" if hits else "nothing",
        "hits": hits,
        "filters": {"limit": 5},
        "embed_ms": 5 + number,
        "search_ms": 1 + number,
    }
    return SearchLog(**values | fields)


@pytest.fixture
def world() -> None:
    healthy()


def red() -> dict[str, str]:
    return {line.name: line.state.value for line in health.run() if line.state != "ok"}


def test_all_is_well(world: None) -> None:
    lines = health.run()
    assert {line.name for line in lines if line.state != "ok"} == set()
    # Without a replica there is nothing to say about one.
    assert {line.name for line in lines} == {one.name for one in health.registered()} - {"search_replica"}
    assert all(line.figure and line.limit and not line.advice for line in lines)


def sql(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def long_ago(**fields: Any) -> None:
    Ticket.objects.filter(title="Printer jams").update(
        updated_at=timezone.now() - timedelta(hours=2), **fields
    )


def an_old_ticket_lost_its_vector() -> None:
    long_ago()
    TicketEmbedding.objects.filter(ticket__title="Printer jams").delete()


def the_workers_count_a_backlog() -> None:
    an_old_ticket_lost_its_vector()
    IndexState.objects.update(total=8, indexed=7)


def the_worker_is_silent() -> None:
    WorkerState.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))


def the_worker_pauses() -> None:
    WorkerState.objects.update(activity="paused", reason="The provider refuses the key.")


def a_text_was_refused() -> None:
    row = TicketEmbedding.objects.select_related("ticket").first()
    assert row is not None
    TicketEmbedding.objects.filter(pk=row.pk).update(
        failed_hash=row.ticket.content_hash, error="The text was refused."
    )


def texts_are_cut() -> None:
    TicketEmbedding.objects.update(embedded_chars=16_000, total_chars=100_000)


def a_row_belongs_to_another_text() -> None:
    row = TicketEmbedding.objects.earliest("pk")
    TicketEmbedding.objects.filter(pk=row.pk).update(content_hash=b"x" * 32)


def a_vector_is_zero() -> None:
    row = TicketEmbedding.objects.earliest("pk")
    TicketEmbedding.objects.filter(pk=row.pk).update(embedding=[0.0] * 512)


def a_vector_is_too_long() -> None:
    row = TicketEmbedding.objects.earliest("pk")
    sql(
        "UPDATE retrieval_ticketembedding SET embedding ="
        " (SELECT array_agg(x * 1.5) FROM unnest(embedding::real[]) AS x)::halfvec WHERE id = %s",
        row.pk,
    )


def two_texts_share_a_vector() -> None:
    first, second = TicketEmbedding.objects.order_by("pk")[:2]
    TicketEmbedding.objects.filter(pk=second.pk).update(embedding=first.embedding)


def hardly_any_text() -> None:
    TicketEmbedding.objects.update(embedded_chars=3, total_chars=3)


def vectors_are_swapped() -> None:
    first, second = TicketEmbedding.objects.order_by("pk")[:2]
    TicketEmbedding.objects.filter(pk=second.pk).update(embedding=first.embedding)
    TicketEmbedding.objects.filter(pk=first.pk).update(embedding=second.embedding)


def the_index_is_gone() -> None:
    IndexState.objects.update(second_stage="hnsw", recall=0.99)


def nobody_measured_the_model() -> None:
    SearchProfile.objects.update(calibrated_at=None)


def no_duplicates_are_looked_for() -> None:
    DuplicateCheck.objects.update(checked_at=None, due_at=timezone.now() - timedelta(hours=1))


def searches_fail() -> None:
    SearchLog.objects.bulk_create(a_search(n, outcome="unavailable", hits=[]) for n in range(100))


def nothing_is_ever_found() -> None:
    SearchLog.objects.update(outcome="nothing", hits=[])


def a_figure_stands_still() -> None:
    SearchLog.objects.update(search_ms=7)


def a_turn_hangs() -> None:
    then = timezone.now() - timedelta(minutes=5)
    conversation = Conversation.objects.create(user=UserFactory())
    Turn.objects.create(conversation=conversation, status="running", started_at=then, heartbeat_at=then)


def turns_all_look_alike() -> None:
    conversation = Conversation.objects.create(user=UserFactory())
    Turn.objects.bulk_create(Turn(conversation=conversation, status="done", total_ms=n) for n in range(50))


BREAKS: list[tuple[Callable[[], None], dict[str, str]]] = [
    (an_old_ticket_lost_its_vector, {"coverage": "fail"}),
    (the_workers_count_a_backlog, {"coverage": "fail", "backlog": "fail"}),
    (the_worker_is_silent, {"worker": "fail"}),
    (the_worker_pauses, {"worker": "fail"}),
    (a_text_was_refused, {"failed": "fail"}),
    (texts_are_cut, {"shortened": "fail"}),
    (a_row_belongs_to_another_text, {"hashes": "fail"}),
    (a_vector_is_zero, {"unit_length": "fail"}),
    (a_vector_is_too_long, {"unit_length": "fail"}),
    (hardly_any_text, {"median_length": "fail"}),
    (vectors_are_swapped, {"known_items": "fail"}),
    (the_index_is_gone, {"second_stage_agreement": "fail"}),
    (nobody_measured_the_model, {"profile": "warn"}),
    (no_duplicates_are_looked_for, {"duplicate_checks": "fail"}),
    (searches_fail, {"searches": "fail"}),
    (nothing_is_ever_found, {"never_moved": "fail"}),
    (a_figure_stands_still, {"never_moved": "fail"}),
    (a_turn_hangs, {"running_turn": "fail"}),
    (turns_all_look_alike, {"turns_never_moved": "warn"}),
]


@pytest.mark.parametrize(("break_it", "lines"), BREAKS, ids=[one.__name__ for one, _ in BREAKS])
def test_exactly_its_line_goes_red(world: None, break_it: Callable[[], None], lines: dict[str, str]) -> None:
    break_it()
    assert red() == lines


def test_a_single_bad_vector_is_seen_however_small_the_sample(
    world: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.health.subject.SAMPLE", 1)
    a_vector_is_zero()
    assert red() == {"unit_length": "fail"}


def test_identical_vectors(world: None) -> None:
    """The second ticket is then not the first for its own text either: that is what it means."""
    two_texts_share_a_vector()
    assert red() == {"identical": "fail", "known_items": "fail"}


def test_texts_that_a_model_cannot_tell_apart_may_share_a_vector(world: None) -> None:
    TicketFactory(title="PRINTER JAMS!", description="tray 2 crumples every second sheet of paper")
    call_command("embed_worker", once=True, verbosity=0)
    DuplicateCheck.objects.update(checked_at=timezone.now())
    two = TicketEmbedding.objects.filter(ticket__title__iexact="printer jams").order_by("pk")
    TicketEmbedding.objects.filter(ticket__title="PRINTER JAMS!").update(embedding=two[0].embedding)
    assert "identical" not in red()


def test_a_model_that_does_not_translate(voyage: VoyageServer) -> None:
    healthy()
    assert red() == {"paraphrases": "fail"}


def test_the_provider_is_away(voyage: VoyageServer, settings: Any) -> None:
    healthy()
    settings.VOYAGE_BASE_URL = "http://127.0.0.1:9/v1"
    assert red() == {"known_items": "fail", "paraphrases": "fail"}
    assert {line.name for line in health.run(probes=False) if line.state != "ok"} == set()


def test_switched_off(world: None, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    assert red() == {"provider": "warn"}


def test_a_check_that_breaks_is_a_line(world: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(subject: health.Subject) -> None:
        sql("SELECT 1/0")

    monkeypatch.setitem(check._registered, "broken", check.Registered(broken, False, False))
    assert red() == {"broken": "fail"}


def test_the_command_tells_by_its_exit_code(world: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check_index")
    assert "ok    Tickets found first by their own text" in capsys.readouterr().out
    the_worker_is_silent()
    with pytest.raises(SystemExit) as ending:
        call_command("check_index", json=True)
    assert ending.value.code == 1
    assert '"status": "fail"' in capsys.readouterr().out


def test_a_database_without_tables_is_one_error_and_no_list_of_lines(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    sql("DROP TABLE retrieval_indexstate")
    with pytest.raises(ProgrammingError):
        call_command("check_index")
    assert capsys.readouterr().out == ""


def test_the_page_is_for_supervisors(world: None, client: Client) -> None:
    address = "/admin/retrieval/indexstate/health/"
    agent = UserFactory(is_staff=True, permissions=["view_ticket"])
    client.force_login(agent)
    assert client.get(address).status_code == 403
    supervisor: User = UserFactory(is_staff=True)
    # What the group of supervisors has by its migration.
    supervisor.user_permissions.add(Permission.objects.get(codename="view_indexstate"))
    client.force_login(supervisor)
    page = client.get(address).content.decode()
    assert "Tickets with a vector" in page
    assert "German finds English" not in page
    assert "German finds English" in client.post(address).content.decode()


def test_the_short_form(world: None, client: Client, django_assert_max_num_queries: Any) -> None:
    assert client.get("/healthz").status_code == 200
    the_workers_count_a_backlog()
    a_turn_hangs()
    with django_assert_max_num_queries(14):
        answer = client.get("/healthz")
    assert answer.status_code == 503
    assert [reason["code"] for reason in answer.json()["reasons"]] == ["backlog", "running_turn"]
