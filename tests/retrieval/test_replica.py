"""Searches read from the replica where there is one; nothing writes through it, and nothing fails with it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from helpdesk import configuration
from helpdesk.configuration import ConfigurationError
from retrieval import health, replica
from retrieval.models import SearchLog
from retrieval.search import find_similar
from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

READ_ONLY = configuration.replica("postgres://somebody@localhost/helpdesk")["OPTIONS"]


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The replica: another connection to the same database, with what SEARCH_DATABASE_URL adds to it."""
    replica_of_tests = connection.copy(replica.ALIAS)
    replica_of_tests.settings_dict["OPTIONS"] |= READ_ONLY
    connections[replica.ALIAS] = replica_of_tests
    monkeypatch.setattr(replica, "is_configured", lambda: True)
    monkeypatch.setattr(replica._Replica, "away_until", 0.0)
    yield replica_of_tests
    replica_of_tests.close()
    del connections[replica.ALIAS]


@pytest.fixture
def alice() -> User:
    TicketFactory(title="Printer PRN-0201 does not react")
    call_command("embed_worker", once=True, verbosity=0)
    return UserFactory(agent=True)


def line() -> health.Check:
    return next(line for line in health.run(only_quick=True) if line.name == "search_replica")


def test_reads_go_there_and_writes_do_not(second: Any, alice: User) -> None:
    with CaptureQueriesContext(second) as there, CaptureQueriesContext(connection) as here:
        outcome = find_similar("Drucker PRN-0201 reagiert nicht", user=alice)
    assert outcome.outcome == "found"
    assert ["nearest" in query["sql"] for query in there] == [True]
    assert not any("nearest" in query["sql"] for query in here)
    assert SearchLog.objects.count() == 1
    assert line().state == "ok"


def test_nothing_can_be_written_through_it(second: Any, alice: User) -> None:
    with pytest.raises(DatabaseError, match="read-only"), transaction.atomic(replica.ALIAS):
        SearchLog.objects.using(replica.ALIAS).create(text="x", outcome="nothing")


def test_while_it_is_away_searches_read_from_the_primary(second: Any, alice: User) -> None:
    second.close()
    second.settings_dict["OPTIONS"]["options"] = "-c no_server_knows_this=on"  # so that it refuses
    for _ in range(2):
        assert find_similar("Printer does not react", user=alice).outcome == "found"
    assert second.connection is None
    assert (line().state, line().figure) == ("warn", "away")


def test_a_replica_that_goes_away_in_mid_search(second: Any, alice: User) -> None:
    find_similar("Printer does not react", user=alice)
    with second.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
    assert find_similar("Printer does not react", user=alice).outcome == "found"


def test_without_one_there_is_no_line(alice: User) -> None:
    assert "search_replica" not in {line.name for line in health.run(only_quick=True)}


def test_a_wrong_address_is_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="SEARCH_DATABASE_URL does not name a Postgres database"):
        configuration.replica("mysql://x")
