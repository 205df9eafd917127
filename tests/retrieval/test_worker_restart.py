"""A Postgres of its own that is stopped and started again while a worker is at work."""

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from helpdesk import postgres
from tests.fakes.voyage import VoyageServer
from tests.processes import run, wait_for
from tests.retrieval.test_worker_processes import (
    MODEL,
    STALE,
    TICKETS,
    Workers,
    environment,
    is_running,
)

pytestmark = pytest.mark.slow


class Database:
    """The server of one data folder, with the product's tables in a database of its own."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.socket_dir = postgres.socket_dir_of(data_dir)
        self.url = f"postgres://{postgres.SUPERUSER}@/helpdesk?host={self.socket_dir}"
        postgres._prepare_folder(data_dir.parent)
        postgres._set_up(data_dir)

    def start(self) -> None:
        postgres._run_server(self.data_dir, self.socket_dir)

    def stop(self) -> None:
        postgres._stop_server(self.data_dir)
        assert not postgres.is_listening(self.socket_dir)

    def connect(self, name: str = "helpdesk") -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.socket_dir), user=postgres.SUPERUSER, dbname=name, autocommit=True
        )


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "postgres")
    made.start()
    try:
        with made.connect("postgres") as connection:
            connection.execute("CREATE DATABASE helpdesk")
        yield made
    finally:
        made.stop()


def make_tickets(database: Database, count: int) -> None:
    with database.connect() as connection:
        (reporter,) = connection.execute(
            """INSERT INTO auth_user (username, password, first_name, last_name, email, is_superuser,
                is_staff, is_active, date_joined)
            VALUES ('bob', '', '', '', '', false, true, true, now()) RETURNING id"""
        ).fetchone() or (0,)
        connection.execute(TICKETS, [reporter, count])


def stale(database: Database) -> int:
    with database.connect() as connection:
        (count,) = connection.execute(STALE, [MODEL]).fetchone() or (-1,)
        return int(count)


def test_the_database_is_restarted_under_it(database: Database) -> None:
    with VoyageServer() as server:
        settings = environment(server, database.url)
        migrated = run("manage.py", "migrate", "--verbosity", "0", **settings)
        assert migrated.returncode == 0, migrated.stderr
        make_tickets(database, 400)
        server.seconds = 0.1
        workers = Workers(server, database.url)
        try:
            pid = workers.start("--batch-size", "8", "--poll", "0.2")
            wait_for(lambda: len(server.requests) > 5)
            database.stop()
            time.sleep(1)
            database.start()
            assert stale(database) > 0
            wait_for(lambda: stale(database) == 0, 20)
            assert is_running(pid)
        finally:
            workers.end()
        assert len(server.embedded) == 400
        assert set(server.embedded.values()) == {1}
