"""Real worker processes, real signals, a real provider over HTTP: nothing is lost, nothing is done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from retrieval.models import IndexState, TicketEmbedding, WorkerState
from tests.fakes.voyage import KEY, Fault, VoyageServer, vector_of
from tests.processes import database_url, wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
MODEL = "voyage-4:256"

STALE = """
    SELECT count(*) FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e
        ON e.model = %s AND e.ticket_id = t.id AND e.content_hash = t.content_hash AND e.embedding IS NOT NULL
    WHERE e.id IS NULL"""

TICKETS = """
    INSERT INTO tickets_ticket (title, description, status, priority, reporter_id, source, resolution,
        duplicate_check, created_at, updated_at, version, status_before_merge)
    SELECT 'Ticket ' || n, '', 'new', 'normal', %s, 'import', '', 'not_needed',
        now() - interval '90 days', now(), 1, ''
    FROM generate_series(1, %s) AS n"""


def environment(server: VoyageServer, database: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "helpdesk.settings",
        "ENV_FILE": "",
        "SECRET_KEY": "only-for-tests",
        "ASSISTANT_BACKEND": "rehearsal",
        "DATABASE_URL": database,
        "VOYAGE_API_KEY": KEY,
        "VOYAGE_BASE_URL": server.url,
        "VOYAGE_DIMENSIONS": "256",
        "EMBED_CONCURRENCY": "2",
        "EMBED_TIMEOUT_SECONDS": "10",
        "LOG_LEVEL": "ERROR",
    }


class Workers:
    """Forks workers and ends every one of them with the test."""

    def __init__(self, server: VoyageServer, database: str) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.retrieval.worker_forks"],
            cwd=ROOT,
            env=environment(server, database),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._pids: list[int] = []

    def start(self, *arguments: str) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(" ".join(arguments) + "\n")
        self._parent.stdin.flush()
        pid = int(self._parent.stdout.readline())
        self._pids.append(pid)
        return pid

    def end(self) -> None:
        for pid in filter(is_running, self._pids):
            os.kill(pid, signal.SIGKILL)
        self._parent.communicate()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def server() -> Iterator[VoyageServer]:
    with VoyageServer() as server:
        yield server


@pytest.fixture
def workers(server: VoyageServer) -> Iterator[Workers]:
    made = Workers(server, database_url())
    yield made
    made.end()


def make_tickets(count: int) -> None:
    reporter = User.objects.create(username="bob")
    with connection.cursor() as cursor:
        cursor.execute(TICKETS, [reporter.pk, count])


def stale() -> int:
    with connection.cursor() as cursor:
        cursor.execute(STALE, [MODEL])
        return int(cursor.fetchone()[0])


def stored() -> int:
    return TicketEmbedding.objects.exclude(embedding=None).count()


def claimed() -> int:
    return TicketEmbedding.objects.exclude(claimed_until=None).count()


def test_sigterm_finishes_the_batch_and_leaves(server: VoyageServer, workers: Workers) -> None:
    make_tickets(60)
    server.seconds = 0.3
    pid = workers.start("--batch-size", "4")
    wait_for(lambda: len(server.requests) >= 2)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not is_running(pid), 10)
    assert stored() == sum(server.embedded.values())
    assert 0 < stored() < 60
    assert claimed() == 0
    assert WorkerState.objects.get().activity == WorkerState.Activity.STOPPED


def test_a_second_sigterm_forces_the_exit(server: VoyageServer, workers: Workers) -> None:
    make_tickets(10)
    server.script(*[Fault(hang=True)] * 2)
    pid = workers.start("--batch-size", "4", "--lease", "1")
    wait_for(lambda: len(server.requests) >= 2)
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.5)
    assert is_running(pid)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not is_running(pid), 5)
    workers.start("--poll", "0.2")
    wait_for(lambda: stale() == 0)


def test_sigkill_at_any_point_loses_nothing(server: VoyageServer, workers: Workers) -> None:
    make_tickets(2_000)
    server.seconds = 0.02
    chance = random.Random(20)
    for _ in range(20):
        before = len(server.requests)
        pid = workers.start("--batch-size", "8", "--lease", "1", "--poll", "0.1")
        wait_for(lambda: len(server.requests) > before or stale() == 0)  # noqa: B023
        time.sleep(chance.random() * 0.3)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_running(pid))  # noqa: B023
        with connection.cursor() as cursor:
            cursor.execute("UPDATE tickets_ticket SET title = title || '!' WHERE random() < 0.02")
    workers.start("--batch-size", "128", "--poll", "0.1", "--lease", "1")
    wait_for(lambda: stale() == 0 and claimed() == 0)
    assert TicketEmbedding.objects.count() == 2_000
    for row in TicketEmbedding.objects.select_related("ticket").order_by("?")[:200]:
        assert row.embedding is not None
        assert np.allclose(row.embedding, vector_of(f"{row.ticket.title}\n", 256), atol=1e-3)


def test_eight_workers_embed_each_of_20000_tickets_once(server: VoyageServer, workers: Workers) -> None:
    make_tickets(20_000)
    pids = [workers.start("--once", "--batch-size", "128") for _ in range(8)]
    wait_for(lambda: not any(map(is_running, pids)), 110)
    assert stale() == 0
    assert claimed() == 0
    assert len(server.embedded) == 20_000
    assert set(server.embedded.values()) == {1}
    assert IndexState.objects.get(pk=MODEL).indexed == 20_000


def test_the_database_goes_away_under_it(server: VoyageServer, workers: Workers) -> None:
    make_tickets(400)
    server.seconds = 0.1
    workers.start("--batch-size", "8", "--poll", "0.2")
    wait_for(lambda: len(server.requests) > 5)
    name = connection.settings_dict["NAME"]
    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    connection.close()
    login = {
        key: parameters[key] for key in ("host", "port", "user", "password", "dbname") if parameters.get(key)
    }
    with psycopg.connect(**login, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            time.sleep(1.5)
        finally:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    wait_for(lambda: stale() == 0)
    assert set(server.embedded.values()) == {1}
