from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


def titles(tickets: Any) -> set[str]:
    return {ticket.title for ticket in tickets}


def test_unresolved() -> None:
    for status in Ticket.Status.values:
        TicketFactory(title=status, status=status)
    assert titles(Ticket.objects.unresolved()) == {"new", "open", "pending"}
    assert {ticket.title for ticket in Ticket.objects.all() if not ticket.is_resolved} == {
        "new",
        "open",
        "pending",
    }


def test_words_in_the_title_come_first() -> None:
    body = TicketFactory(title="Something else", description="The printer jams")
    title = TicketFactory(title="Printer jams", description="Again")
    TicketFactory(title="Printer", description="is fine")
    assert list(Ticket.objects.matching_words("printer JAMS")) == [title, body]


def test_phrases_and_exclusions() -> None:
    one = TicketFactory(title="paper jam in tray two")
    TicketFactory(title="jam of paper")
    assert list(Ticket.objects.matching_words('"paper jam"')) == [one]
    assert list(Ticket.objects.matching_words("paper -tray").values_list("title", flat=True)) == [
        "jam of paper"
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_query_is_valid(db: None, query: str) -> None:
    list(Ticket.objects.matching_words(query))
    list(Ticket.objects.search(query))


def test_search_by_number() -> None:
    ticket = TicketFactory(title="Printer")
    TicketFactory(title=f"Room {ticket.pk}")
    assert list(Ticket.objects.search(f"#{ticket.pk}")) == [ticket]
    assert Ticket.objects.search(f" {ticket.pk} ").earliest("pk") == ticket


@pytest.mark.parametrize("query", ["NB-10234", "nb_10234", "nb10234", "0x80070005", "srv-mail-01"])
def test_search_by_exact_term(query: str) -> None:
    found = TicketFactory(title="Laptop", description="NB-10234 shows 0x80070005, server SRV-MAIL-01.")
    TicketFactory(title="Laptop", description="NB-99999 shows 0x99999999, server SRV-FILE-02.")
    assert list(Ticket.objects.search(query)) == [found]


AGENT = 4711  # one of TEAM, who share the tickets
TEAM = range(AGENT, AGENT + 20)
QUESTIONS: list[tuple[Any, str]] = [
    (Ticket.objects.order_by("-created_at", "-pk")[:50], "tickets_created"),
    (Ticket.objects.order_by("-updated_at")[:50], "tickets_updated"),
    (Ticket.objects.filter(status="pending").order_by("-created_at")[:50], "tickets_status_created"),
    (Ticket.objects.unresolved().filter(assignee=AGENT).order_by("-created_at")[:9], "unresolved_assignee"),
    (Ticket.objects.unresolved().filter(assignee=None).order_by("-created_at")[:9], "unresolved_assignee"),
    (
        Ticket.objects.unresolved().filter(priority="urgent").order_by("-created_at")[:9],
        "unresolved_priority",
    ),
    (Ticket.objects.filter(duplicate_of=1), "tickets_duplicate_of"),
    (Ticket.objects.search("nb-10234"), "tickets_search_words"),
    (Ticket.objects.search("nb-10234"), "tickets_identifiers"),
]


@pytest.fixture
def three_thousand(db: None) -> None:
    """Nearly all solved and assigned, as in a helpdesk that has been running for a while."""
    reporter = TicketFactory().reporter
    for agent in TEAM:
        UserFactory(pk=agent, is_staff=True)
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tickets_ticket (title, description, status, priority, source, resolution,
                   duplicate_check, created_at, updated_at, version, status_before_merge,
                   reporter_id, assignee_id)
               SELECT 'Ticket NB-' || n, 'words ' || n,
                   CASE WHEN n %% 50 = 0 THEN 'open' WHEN n %% 49 = 0 THEN 'pending' ELSE 'closed' END,
                   CASE WHEN n %% 70 = 0 THEN 'urgent' ELSE 'normal' END, 'chat', '', 'not_needed',
                   now() - n * interval '1 hour', now() - n * interval '1 hour', 1, '', %s,
                   CASE WHEN n %% 100 = 0 THEN NULL ELSE %s + n / 7 %% %s END
               FROM generate_series(1, 3000) n""",
            [reporter.pk, AGENT, len(TEAM)],
        )
        cursor.execute("ANALYZE tickets_ticket")
        cursor.execute(
            "SET LOCAL enable_seqscan = off"
        )  # three thousand rows are few enough to read all of them


def test_no_question_reads_the_whole_table(three_thousand: None) -> None:
    for tickets, index in QUESTIONS:
        plan = tickets.explain()
        assert index in plan
        assert "Seq Scan" not in plan


def test_hashes_are_compared_in_an_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'tickets_ticket_id_hash'")
        assert "(id) INCLUDE (content_hash)" in cursor.fetchone()[0]
