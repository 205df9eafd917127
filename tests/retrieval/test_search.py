"""Search on the real database: what it finds, what it says when it cannot look, and how it asks."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from retrieval import candidates, pgvector, second_stage
from retrieval.embedders import get_embedder, model_key
from retrieval.models import IndexState, SearchLog, SearchProfile, TicketEmbedding
from retrieval.search import Outcome, SearchOutcome, find_similar
from tests.factories import TicketFactory, UserFactory
from tests.fakes.voyage import Fault, VoyageServer
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return UserFactory(is_staff=True, permissions=["view_ticket"])


def ticket(title: str, description: str = "", **fields: Any) -> Ticket:
    return TicketFactory(title=title, description=description, **fields)


def embed_all() -> None:
    call_command("embed_worker", once=True, verbosity=0)


def log_of(outcome: SearchOutcome) -> SearchLog:
    assert outcome.log_id is not None
    return SearchLog.objects.get(pk=outcome.log_id)


def ids(outcome: SearchOutcome) -> list[int]:
    return [hit.ticket.pk for hit in outcome.hits]


# -- found
# ---------------------------------------------------------------------------------------------------------


def test_finds_across_languages_and_logs_it(alice: User) -> None:
    printer = ticket("Printout fails on second floor", "The printer does not react.")
    ticket("VPN drops every hour")
    embed_all()
    outcome = find_similar("Drucker im zweiten Stock reagiert nicht", user=alice)
    assert outcome.outcome == Outcome.FOUND
    assert outcome.hits[0].ticket == printer
    assert "meaning" in outcome.hits[0].matched
    assert (outcome.coverage.indexed, outcome.coverage.total) == (2, 2)
    log = log_of(outcome)
    assert log.user == alice
    assert log.outcome == "found"
    assert [hit["id"] for hit in log.hits] == ids(outcome)
    assert log.embed_ms is not None
    assert log.search_ms is not None
    assert log.model == "use-multilingual-3:512"


def test_a_shared_identifier_is_found_whatever_the_vector_says(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "VECTOR_CANDIDATES", 3)
    reporter = UserFactory()
    for n in range(10):
        ticket(f"The door in building {n} is locked", reporter=reporter)
    wanted = ticket("Strange sound", "Seen on PRN-4711.", reporter=reporter)
    embed_all()
    outcome = find_similar("A door is locked near prn-4711", user=alice, limit=20)
    hit = next(hit for hit in outcome.hits if hit.ticket == wanted)
    assert "identifier" in hit.matched
    assert "prn4711" in hit.identifiers
    assert hit.similarity is not None


def test_a_ticket_named_by_its_number_is_found(alice: User) -> None:
    wanted = ticket("Coffee machine leaks")
    ticket("Something else")
    embed_all()
    outcome = find_similar(f"the same as #{wanted.pk}", user=alice)
    assert "identifier" in next(hit for hit in outcome.hits if hit.ticket == wanted).matched


def test_a_fresh_ticket_is_found_by_its_words_and_counted_as_missing(alice: User) -> None:
    ticket("VPN drops every hour")
    embed_all()
    fresh = ticket("Beamer in Zimmer Aurora flackert")
    outcome = find_similar("Beamer flackert", user=alice)
    hit = next(hit for hit in outcome.hits if hit.ticket == fresh)
    assert hit.matched == ("words",)
    assert hit.similarity is None
    assert (outcome.coverage.indexed, outcome.coverage.total) == (1, 2)
    assert outcome.coverage.oldest_unindexed_seconds is not None


def test_an_edited_ticket_counts_as_missing_until_it_is_embedded_again(alice: User) -> None:
    one = ticket("VPN drops every hour")
    embed_all()
    one.change(by=None, via="admin", title="Beamer flackert")
    assert find_similar("Beamer flackert", user=alice).coverage.missing == 1
    embed_all()
    assert find_similar("Beamer flackert", user=alice).coverage.missing == 0


def test_a_ticket_that_could_not_be_embedded_is_found_by_its_words(alice: User, voyage: VoyageServer) -> None:
    ticket("VPN drops every hour")
    poison = ticket("poison ivy in the server room")
    voyage.rules.append(lambda texts: Fault(500) if any("poison" in text for text in texts) else None)
    embed_all()
    IndexState.objects.update(swept_at=timezone.now() + timedelta(hours=1))
    outcome = find_similar("ivy grows here", user=alice)
    assert poison.pk in ids(outcome)
    assert outcome.coverage.missing == 1


def test_old_tickets_imported_late_are_counted(alice: User) -> None:
    ticket("VPN drops every hour")
    embed_all()
    old = timezone.now() - timedelta(days=900)
    ticket("Imported", created_at=old, updated_at=old)
    assert find_similar("VPN", user=alice).coverage.total == 2


def test_filters(alice: User) -> None:
    open_one = ticket("Printer is on fire")
    closed = ticket("Printer is on fire again", status="closed")
    other = ticket("Printer burns")
    embed_all()
    assert set(ids(find_similar("Printer fire", user=alice))) == {open_one.pk, closed.pk, other.pk}
    assert closed.pk not in ids(find_similar("Printer fire", user=alice, statuses=["new", "open"]))
    assert ids(find_similar("Printer fire", user=alice, statuses=["closed"])) == [closed.pk]
    assert other.pk not in ids(find_similar("Printer fire", user=alice, exclude=[other.pk]))
    assert len(find_similar("Printer fire", user=alice, limit=1).hits) == 1
    assert find_similar("Printer fire", user=alice, statuses=[]).outcome == Outcome.NOTHING


def test_nothing_above_the_floor_is_nothing(alice: User) -> None:
    ticket("Printer is on fire")
    embed_all()
    SearchProfile.objects.create(model=model_key(get_embedder()), floor=0.99, likely=0.999)
    outcome = find_similar("The canteen ran out of soup", user=alice)
    assert outcome.outcome == Outcome.NOTHING
    assert outcome.hits == ()
    assert outcome.reason_code == ""


def test_odd_texts_are_searched_or_refused_in_words(alice: User) -> None:
    ticket("Printer is on fire")
    embed_all()
    for text in (
        "\x00printer",
        "\ud800 printer",
        "🙂🙂",
        "שלום",
        "x" * 150_000,
        "'; DROP TABLE --",
        "%s %(a)s",
    ):
        assert find_similar(text, user=alice).outcome in (Outcome.FOUND, Outcome.NOTHING)
    for text in ("", "  \n\t", "\x00", "\u200b"):
        outcome = find_similar(text, user=alice)
        assert (outcome.outcome, outcome.reason_code) == (Outcome.UNAVAILABLE, "empty_query")


# -- could not look
# ---------------------------------------------------------------------------------------------------


def unavailable(user: User, code: str) -> SearchOutcome:
    outcome = find_similar("Printer PRN-4711 is on fire", user=user)
    assert outcome.outcome == Outcome.UNAVAILABLE
    assert outcome.reason_code == code
    assert outcome.reason
    assert log_of(outcome).reason_code == code
    assert outcome.model == log_of(outcome).model == ""  # none has compared
    return outcome


def test_without_permission() -> None:
    ticket("Printer")
    assert unavailable(UserFactory(), "not_permitted").hits == ()


def test_provider_off_still_shows_shared_words_and_identifiers(alice: User, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    by_code = ticket("Scanner", "It is PRN-4711")
    by_words = ticket("The old printer smokes")
    outcome = unavailable(alice, "provider_off")
    assert {by_code.pk, by_words.pk} == set(ids(outcome))
    assert "meaning" not in {way for hit in outcome.hits for way in hit.matched}
    assert (outcome.coverage.indexed, outcome.coverage.total) == (0, 2)


def test_no_key(alice: User, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "voyage"
    assert "VOYAGE_API_KEY" in unavailable(alice, "no_key").reason


def test_index_empty(alice: User) -> None:
    ticket("Printer")
    unavailable(alice, "index_empty")


def test_key_refused(alice: User, voyage: VoyageServer) -> None:
    ticket("Printer")
    embed_all()
    voyage.key = "another"
    outcome = unavailable(alice, "key_refused")
    assert "VOYAGE_API_KEY" in outcome.reason
    assert "pa-test-key" not in outcome.reason
    assert outcome.coverage.total == 1


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(500), "provider_down"),
        (Fault(429), "rate_limited"),
        (Fault(body="<html>"), "provider_bad_answer"),
        (Fault(drop=True), "provider_down"),
        (Fault(hang=True), "provider_timeout"),
    ],
)
def test_provider_at_fault(alice: User, voyage: VoyageServer, settings: Any, fault: Fault, code: str) -> None:
    ticket("Printer")
    embed_all()
    settings.EMBED_TIMEOUT_SECONDS = 0.5
    voyage.script(fault)
    unavailable(alice, code)


def test_provider_unreachable(alice: User, voyage: VoyageServer) -> None:
    ticket("Printer")
    embed_all()
    voyage.stop()
    unavailable(alice, "provider_down")


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_the_provider_thinks(alice: User, voyage: VoyageServer) -> None:
    ticket("Printer")
    embed_all()
    ours = connections["default"]  # seen from the server's thread as well
    held = []
    voyage.rules.append(lambda texts: held.append(ours.connection is not None))
    assert find_similar("Printer", user=alice).outcome == Outcome.FOUND
    assert held == [False]


@pytest.mark.django_db(transaction=True)
def test_database_without_pgvector(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema as a migration leaves it where the extension cannot be installed."""
    ticket("Printer")
    with connection.cursor() as cursor:
        cursor.execute(pgvector.DROP_PLACEHOLDER)
        cursor.execute("DROP EXTENSION vector")
        cursor.execute(pgvector.ADD_PLACEHOLDER)
    try:
        assert "pgvector" in unavailable(alice, "no_pgvector").reason
        assert len(find_similar("Printer", user=alice).hits) == 1
    finally:
        pgvector.ensure()
        connection.close()  # it remembers the numbers of the old types
    embed_all()
    assert find_similar("Printer", user=alice).outcome == Outcome.FOUND
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE attname = 'embedding' AND attrelid = %s::regclass",
            [pgvector.TABLE],
        )
        assert cursor.fetchone() == ("p",)


# -- a change of model
# ------------------------------------------------------------------------------------------------


def test_searches_with_the_old_model_until_the_new_one_covers_everything(
    alice: User, voyage: VoyageServer, settings: Any
) -> None:
    made = [ticket(f"Ticket {n}") for n in range(4)]
    embed_all()
    settings.VOYAGE_DIMENSIONS = 512
    assert find_similar("Ticket", user=alice).model == "voyage-4:256"
    old = TicketEmbedding.objects.filter(model="voyage-4:256")
    assert old.count() == 4
    for one in made[:2]:
        TicketEmbedding.objects.create(
            ticket=one, model="voyage-4:512", content_hash=one.content_hash, embedding=np.ones(512) / 512**0.5
        )
    during = find_similar("Ticket", user=alice)
    assert (during.model, during.outcome) == ("voyage-4:256", Outcome.FOUND)
    assert voyage.requests[-1]["output_dimension"] == 256
    embed_all()
    assert find_similar("Ticket", user=alice).model == "voyage-4:512"


def test_from_voyage_to_local_and_without_the_old_provider(
    alice: User, voyage: VoyageServer, settings: Any
) -> None:
    ticket("Printer PRN-4711")
    embed_all()
    settings.EMBEDDING_PROVIDER = "local"
    assert find_similar("Printer", user=alice).model == "voyage-4:256"
    settings.VOYAGE_API_KEY = "placeholder"
    outcome = unavailable(alice, "other_model")
    assert "voyage-4:256" in outcome.reason
    assert len(outcome.hits) == 1
    embed_all()
    assert find_similar("Printer", user=alice).model == "use-multilingual-3:512"


# -- how it asks the database
# -----------------------------------------------------------------------------------------


def many_vectors(count: int, dimensions: int = 64) -> str:
    """Tickets with random vectors under a model of their own, a tenth of them new, with statistics."""
    model = f"voyage-4:{dimensions}"
    reporter = UserFactory()
    Ticket.objects.bulk_create(
        Ticket(title=f"Ticket {n}", reporter=reporter, status="closed" if n % 10 else "new")
        for n in range(count)
    )
    random = np.random.default_rng(3).standard_normal((count, dimensions)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    TicketEmbedding.objects.bulk_create(
        TicketEmbedding(ticket_id=pk, model=model, content_hash=bytes(hashed), embedding=vector)
        for (pk, hashed), vector in zip(
            Ticket.objects.order_by("pk").values_list("pk", "content_hash"), random, strict=True
        )
    )
    now = timezone.now() + timedelta(minutes=5)
    last = Ticket.objects.latest("pk").pk
    IndexState.objects.create(
        model=model, total=count, indexed=count, last_id=last, swept_at=now, completed_at=now, counted_at=now
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tickets_ticket")
        cursor.execute("ANALYZE retrieval_ticketembedding")
    return model


class Given:
    """A provider with a fixed query vector."""

    window_bytes = 100_000
    dilutes = remote = False
    batch_texts, batch_bytes = 100, 1_000_000

    def __init__(self, model: str) -> None:
        self.name, _, dimensions = model.rpartition(":")
        self.dimensions = int(dimensions)
        vector = np.random.default_rng(5).standard_normal(self.dimensions)
        self.vector = (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed_query(self, text: str) -> Any:
        return self.vector


@pytest.fixture
def big(monkeypatch: pytest.MonkeyPatch) -> str:
    model = many_vectors(3_000)
    monkeypatch.setattr("retrieval.index.get_embedder", lambda: Given(model))
    return model


def statement_and_plan(user: User, **options: Any) -> tuple[int, str]:
    """How many statements a search sends, and the plan of the one that scans."""
    user.has_perm("tickets.view_ticket")  # asked for once a request
    with CaptureQueriesContext(connection) as captured:
        find_similar("Der Drucker reagiert nicht", user=user, **options)
    (scan,) = [query["sql"] for query in captured if "nearest AS" in query["sql"]]
    before, _, after = scan.partition("WITH ")
    with connection.cursor() as cursor:
        cursor.execute(f"{before}EXPLAIN WITH {after}".replace("%", "%%"), [])
        while cursor.description is None:
            cursor.nextset()
        return len(captured), "\n".join(row[0] for row in cursor.fetchall())


def test_three_statements_and_one_scan(alice: User, big: str) -> None:
    count, plan = statement_and_plan(alice)
    assert count == 3
    assert plan.count("Seq Scan on retrieval_ticketembedding") == 1
    assert "Seq Scan on tickets_ticket" not in plan
    assert "Join" not in plan.split("CTE fresh")[0]
    assert "embedding_failed" not in plan  # while the worker has counted no failure


def test_a_vector_is_sent_in_the_precision_that_is_stored() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    sent = pgvector.halfvec_text(finite.astype(np.float32))
    assert np.array_equal(np.array(sent[1:-1].split(","), dtype=np.float16), finite)


def test_filters_do_not_break_the_plan(alice: User, big: str) -> None:
    count, plan = statement_and_plan(alice, statuses=["new", "open"], exclude=[1, 2, 3])
    assert count == 3
    nearest = plan.split("CTE fresh")[0]
    assert nearest.count(" on retrieval_ticketembedding") == 1
    assert "Seq Scan on tickets_ticket" not in nearest


def test_a_large_corpus_is_scanned_by_two_processes(
    alice: User, big: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "PARALLEL_FROM", 1_000)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL min_parallel_table_scan_size = 0")
    _, plan = statement_and_plan(alice)
    assert "Parallel Seq Scan on retrieval_ticketembedding" in plan


@pytest.mark.django_db(transaction=True)
def test_the_second_stage(alice: User, big: str) -> None:
    exact = {status: find_similar("x", user=alice, limit=20, statuses=status) for status in (None, ("new",))}
    call_command("vector_index", "create", model=big)
    try:
        state = IndexState.objects.get(pk=big)
        assert state.second_stage == "hnsw"
        assert state.recall is not None
        assert state.recall > 0.95
        _, plan = statement_and_plan(alice)
        assert second_stage.index_name(big) in plan
        assert "Seq Scan on retrieval_ticketembedding" not in plan
        for status, truth in exact.items():
            outcome = find_similar("x", user=alice, limit=20, statuses=status)
            assert len(outcome.hits) == 20
            assert len(set(ids(outcome)) & set(ids(truth))) >= 19
        assert find_similar("x", user=alice, exclude=ids(exact[None]), limit=20).hits[0].ticket.pk not in ids(
            exact[None]
        )
        # So few that the index would search in vain: exact, and none is missing.
        few = list(Ticket.objects.order_by("pk").values_list("pk", flat=True)[:7])
        Ticket.objects.filter(pk__in=few).update(status="pending")
        assert set(ids(find_similar("x", user=alice, limit=20, statuses=["pending"]))) == set(few)
    finally:
        call_command("vector_index", "drop", model=big)
    _, plan = statement_and_plan(alice)
    assert "Seq Scan on retrieval_ticketembedding" in plan
