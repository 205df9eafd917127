"""From the release before to this one: its data is read, and its processes may go on writing meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from assistant.models import Turn
from retrieval import search
from tickets.models import Ticket, TicketEvent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

# What data and schema of the release before are; the sites of Django itself were as they are now.
DATA = (Path(__file__).parents[1] / "data" / "previous_release.sql").read_text(encoding="utf-8")
MIGRATIONS = [
    ("tickets", "0004_related_tickets"),
    ("tickets_api", "0001_initial"),
    ("retrieval", "0002_duplicates_and_incidents"),
    ("assistant", "0001_initial"),
]
THIRD_PARTY = ("admin", "auth", "axes", "contenttypes", "sessions")


@pytest.fixture
def previous_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connection leads to a database of the release before, with what that had stored."""
    name = f"{connection.settings_dict['NAME']}_upgraded"
    _execute(f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}"')
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "NAME", name)
        executor = MigrationExecutor(connection)
        known = executor.loader.graph.leaf_nodes()
        executor.migrate([*MIGRATIONS, *(node for node in known if node[0] in THIRD_PARTY)])
        _execute(DATA)
        yield
        connection.close()
    _execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_data_of_the_release_before(previous_release: None, client: Client) -> None:
    call_command("migrate", verbosity=0)
    _is_all_there(client)

    # A process of the release before that still runs: its statements name the columns it knows.
    tables = [table for table in connection.introspection.table_names() if f"INSERT INTO {table} " in DATA]
    _execute(f"TRUNCATE {', '.join(tables)} CASCADE", DATA)
    _is_all_there(client)


def _is_all_there(client: Client) -> None:
    anna = Ticket.objects.get(title__startswith="Scanner").assignee
    assert anna
    client.force_login(anna)
    duplicate = Ticket.objects.get(title="Printer PRN-0201 prints nothing")
    assert duplicate.duplicate_of
    assert Ticket.objects.count() == 6

    for page in (
        "/admin/tickets/ticket/",
        f"/admin/tickets/ticket/{duplicate.pk}/change/",
        "/api/v1/tickets/",
    ):
        assert "Printer PRN-0201 prints nothing" in client.get(page).content.decode()
    conversation = client.get(f"/chat/{Turn.objects.latest('pk').conversation_id}/").content.decode()
    assert "Ich habe Ticket" in conversation
    assert "Drucker im Lager" in conversation

    outcome = search.find_similar("the VPN disconnects every hour", user=anna, limit=3)
    assert outcome.outcome == "found"
    assert outcome.hits[0].ticket.title == "VPN trennt jede Stunde"
    assert outcome.coverage.indexed == outcome.coverage.total == 6
    named = Ticket.objects.filter(identifiers__contains=["prn0201"])
    assert list(named.values_list("duplicate_of", flat=True))

    duplicate.unmerge(by=anna)
    duplicate.change(by=anna, via="admin", status="resolved")
    assert TicketEvent.objects.filter(ticket=duplicate).count() == 4
