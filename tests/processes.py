"""Starts the real commands with an environment of their own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from django.db import connection

ROOT = Path(__file__).resolve().parents[1]
T = TypeVar("T")
Finished = subprocess.CompletedProcess[str]
KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment(**settings: str) -> dict[str, str]:
    """Nothing of ours but what the test sets: no key, no .env file."""
    bare = {name: os.environ[name] for name in KEPT if name in os.environ}
    return bare | {"ENV_FILE": "", "PYTHONWARNINGS": "error"} | settings


def run(*arguments: str, **settings: str) -> Finished:
    """`python ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def assert_one_sentence(finished: Finished, *parts: str) -> None:
    """Failed with one line that holds all parts, and nothing else."""
    assert finished.returncode != 0
    lines = (finished.stdout + finished.stderr).strip().splitlines()
    assert len(lines) == 1, lines
    assert "Traceback" not in lines[0]
    for part in parts:
        assert part in lines[0]


@contextmanager
def started(*arguments: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """`python ARGUMENTS` in the background, ended at the latest with the block; its output is one stream."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(condition: Callable[[], T | None], seconds: float = 60) -> T:
    """The first true answer of `condition`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"nothing came of {condition} in {seconds} seconds")


def database_url() -> str:
    """DATABASE_URL of the database that this process is connected to."""
    parameters = connection.get_connection_params()
    secret = f":{quote(parameters['password'], safe='')}" if parameters.get("password") else ""
    port = f":{parameters['port']}" if parameters.get("port") else ""
    host = str(parameters.get("host", ""))
    if host.startswith("/"):  # the folder of a socket is written as the beginning of the path
        host, port = "", f"/{host}"
    return f"postgres://{parameters.get('user', '')}{secret}@{host}{port}/{connection.settings_dict['NAME']}"
