"""`make run` as a person meets it: from nothing to a page that answers, and to an end without left-overs."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from helpdesk import postgres
from tests.processes import ROOT, assert_one_sentence, environment, free_port, run, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


class Demo:
    def __init__(self, var: Path) -> None:
        self.var = var
        self.port = free_port()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "helpdesk.demo"],
            cwd=ROOT,
            env=environment(VAR_DIR=str(var), PORT=str(self.port), REHEARSAL_PORT=str(free_port())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for_line(self, start: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith(start):
                return line.strip()
        raise AssertionError("".join(self.lines))

    def wait_until_up(self) -> str:
        """The address. Parts are remembered, to see later that none is left."""
        address = self.wait_for_line("Open ").removeprefix("Open ")
        self.wait_for_line("Log in as ")
        self.parts = psutil.Process(self.process.pid).children(recursive=True)
        return address

    def wait_for_end(self) -> int:
        self.lines += self.process.communicate(timeout=40)[0].splitlines(keepends=True)
        return self.process.returncode

    def is_gone(self) -> bool:
        server_ended = not postgres.is_listening(postgres.socket_dir_of(self.var / "postgres"))
        return server_ended and not any(part.is_running() for part in self.parts)


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, so that the later starts find a database."""
    return tmp_path_factory.mktemp("demo") / "var"


@pytest.fixture
def demo(var: Path) -> Iterator[Demo]:
    demo = Demo(var)
    yield demo
    if demo.process.poll() is None:
        demo.process.terminate()
    demo.process.wait(timeout=40)
    if demo.process.stdout is not None:
        demo.process.stdout.close()


def worker_and_page(address: str) -> bool:
    return httpx.get(f"{address}healthz", timeout=10).status_code == 200


def test_from_nothing_to_a_page_and_to_an_end_by_ctrl_c(demo: Demo) -> None:
    address = demo.wait_until_up()
    assert address == f"http://127.0.0.1:{demo.port}/"
    assert not [line for line in demo.lines if "[error" in line or "[helpdesk.audit]" in line]
    assert "rehearsal model" in " ".join(" ".join(part.cmdline()) for part in demo.parts).replace("_", " ")

    login = httpx.get(address, follow_redirects=True)
    assert login.status_code == 200
    assert 'name="password"' in login.text
    nowhere = httpx.get(f"{address}no-such-page/", headers={"Accept-Language": "en"})
    assert (nowhere.status_code, "Back to the chat" in nowhere.text) == (404, True)
    assert "urlconf" not in nowhere.text.lower()
    assert httpx.get(f"{address}static/helpdesk/admin.css").status_code == 200
    wait_for(lambda: worker_and_page(address))
    health = wait_for(lambda: all_indexed(address))
    assert health["search"]["provider"] == "local"
    assert health["search"]["total"] >= 60

    demo.process.send_signal(signal.SIGINT)
    assert demo.wait_for_end() == 0
    assert demo.is_gone()
    assert "Traceback" not in "".join(demo.lines)


def all_indexed(address: str) -> dict[str, Any] | None:
    health = httpx.get(f"{address}healthz", timeout=10).json()
    return health if health["search"].get("indexed") == health["search"].get("total", -1) else None


def test_the_next_start_finds_its_data_and_sigterm_ends_it_as_well(demo: Demo) -> None:
    demo.wait_until_up()
    demo.process.terminate()
    assert demo.wait_for_end() == 0
    assert demo.is_gone()


def test_a_part_that_ends_takes_the_rest_down_with_a_sentence(demo: Demo) -> None:
    demo.wait_until_up()
    worker = next(part for part in demo.parts if "embed_worker" in part.cmdline())
    worker.kill()
    assert demo.wait_for_end() == 1
    assert any(line.startswith("embed_worker has ended") for line in demo.lines)
    assert demo.is_gone()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children that their parent was killed")
def test_killed_without_warning_it_leaves_nothing_behind(demo: Demo) -> None:
    demo.wait_until_up()
    demo.process.kill()
    demo.wait_for_end()
    wait_for(demo.is_gone)


def test_a_taken_port_is_one_sentence(var: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        finished = run("-m", "helpdesk.demo", VAR_DIR=str(var), PORT=str(port))
    assert_one_sentence(finished, f"PORT {port} is taken", f"PORT={port + 1} make run")


def test_a_key_for_claude_means_claude() -> None:
    script = "from helpdesk import demo; demo.choose_address(); from helpdesk import settings as s;"
    script += "print(s.ASSISTANT_BACKEND, s.EMBEDDING_PROVIDER)"
    keys = {"ANTHROPIC_API_KEY": "sk-ant-1", "VOYAGE_API_KEY": "pa-1"}
    assert run("-c", script, PORT=str(free_port()), SECRET_KEY="x").stdout == "rehearsal local\n"
    assert run("-c", script, PORT=str(free_port()), SECRET_KEY="x", **keys).stdout == "claude voyage\n"


def test_ctrl_c_while_preparing(demo: Demo) -> None:
    demo.wait_for_line("Preparing")
    os.kill(demo.process.pid, signal.SIGINT)
    assert demo.wait_for_end() == 0
    assert "Traceback" not in "".join(demo.lines)
