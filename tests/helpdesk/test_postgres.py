"""The embedded server's life: started by the first process, shared, stopped by the last, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from helpdesk import postgres
from tests.processes import ROOT, environment

USE = """
import sys
from pathlib import Path
from helpdesk import postgres
server = postgres.start(Path(sys.argv[1]))
server.ensure_database("helpdesk")
print("ready", flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.slow


class User:
    """A process that uses the server until it is told to end."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USE, str(data_dir)],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", line + self.process.stdout.read()

    def leave(self) -> None:
        self.process.communicate("\n", timeout=30)
        assert self.process.returncode == 0

    def kill(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "var" / "postgres"
    yield path
    assert wait_until_stopped(path), "the test left its server behind"


def is_running(data_dir: Path) -> bool:
    return postgres.is_listening(postgres.socket_dir_of(data_dir))


def wait_until_stopped(data_dir: Path) -> bool:
    deadline = time.monotonic() + 15
    while is_running(data_dir) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(data_dir)


def start_user(data_dir: Path) -> User:
    user = User(data_dir)
    user.wait_until_ready()
    return user


def query(data_dir: Path, statement: LiteralString) -> object:
    """The first value of the first row, None for a statement without rows."""
    socket_dir = str(postgres.socket_dir_of(data_dir))
    with psycopg.connect(host=socket_dir, user="postgres", dbname="helpdesk", autocommit=True) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return row and row[0]


def test_two_processes_share_one_server_and_the_last_stops_it(data_dir: Path) -> None:
    first, second = User(data_dir), User(data_dir)  # both at once on a folder that does not exist yet
    first.wait_until_ready()
    second.wait_until_ready()
    query(data_dir, "CREATE TABLE kept AS SELECT 1 AS x")
    first.leave()
    assert query(data_dir, "SELECT x FROM kept") == 1
    second.leave()
    assert not is_running(data_dir), "the last process has ended, so the server has too"

    third = start_user(data_dir)
    assert query(data_dir, "SELECT x FROM kept") == 1, "the data is still there"
    assert query(data_dir, "SHOW fsync") == "on"
    assert query(data_dir, "SHOW listen_addresses") == ""
    assert query(data_dir, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    third.leave()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_killed_last_process_leaves_no_server_behind(data_dir: Path, number: int) -> None:
    start_user(data_dir).kill(number)
    assert wait_until_stopped(data_dir)


def test_a_killed_process_is_not_counted_for_ever(data_dir: Path) -> None:
    killed, other = start_user(data_dir), start_user(data_dir)
    killed.kill(signal.SIGKILL)
    time.sleep(0.2)
    assert is_running(data_dir), "the other one still uses it"
    other.leave()
    assert not is_running(data_dir)


def test_a_killed_server_recovers_with_the_next_process(data_dir: Path) -> None:
    user = start_user(data_dir)
    query(data_dir, "CREATE TABLE kept AS SELECT 1 AS x")
    pid = int((data_dir / "postmaster.pid").read_text().splitlines()[0])
    subprocess.run(["kill", "-KILL", str(pid)], check=True)
    assert wait_until_stopped(data_dir)
    user.leave()

    user = start_user(data_dir)
    assert query(data_dir, "SELECT x FROM kept") == 1
    user.leave()


def test_ctrl_c_for_the_whole_process_group_spares_the_server(data_dir: Path) -> None:
    """The first process started the server from our group; the server must not be in it."""
    first, second = start_user(data_dir), start_user(data_dir)
    server = int((data_dir / "postmaster.pid").read_text().splitlines()[0])
    assert os.getpgid(server) == server
    first.kill(signal.SIGINT)
    assert query(data_dir, "SELECT 1") == 1
    second.leave()


def test_an_interrupted_set_up_is_done_again(data_dir: Path) -> None:
    half = data_dir.with_name("postgres.new")
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    user = start_user(data_dir)
    assert query(data_dir, "SELECT 1") == 1
    user.leave()


def test_a_folder_that_is_too_deep_for_a_socket(data_dir: Path) -> None:
    deep = data_dir.parent / ("d" * 60) / ("e" * 60) / "postgres"
    assert postgres.socket_dir_of(deep) != deep
    user = start_user(deep)
    assert query(deep, "SELECT 1") == 1
    user.leave()
    assert not is_running(deep)


def test_a_broken_data_folder_is_one_sentence(data_dir: Path) -> None:
    data_dir.mkdir(parents=True)
    (data_dir / "PG_VERSION").write_text("9.6\n")
    finished = subprocess.run(
        [sys.executable, "-c", USE, str(data_dir)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    last = finished.stderr.strip().splitlines()[-1]
    assert "The embedded Postgres cannot run here" in last
    assert "DATABASE_URL" in last
