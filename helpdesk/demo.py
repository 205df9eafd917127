"""`make run`: everything on one machine, from nothing to a page that answers.

Prepares the database, starts the web server, the worker and (without a key for Claude) the rehearsal model,
waits until the site answers, and stops all of it together.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

import environ

from helpdesk import configuration as read
from helpdesk.configuration import ConfigurationError
from helpdesk.startup import one_sentence_errors

BASE_DIR = Path(__file__).resolve().parent.parent
SECONDS_TO_ANSWER = 120
SECONDS_TO_STOP = 10
PR_SET_PDEATHSIG = 1


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class PartEnded(Exception):
    """A part that should run until the end has ended; the text is a sentence that names it."""


def main() -> None:
    with one_sentence_errors():
        run()


def run() -> None:
    """Blocks until Ctrl-C or SIGTERM, or until a part ends by itself."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parts = Parts()
    try:
        address = choose_address()
        load_settings()
        parts.start_web(address)  # it takes longest to load; until we say so nobody knows its address
        prepare_database()
        parts.start_others()
        parts.wait_until_answering(address)
        announce(address)
        parts.watch()
    except KeyboardInterrupt:
        say("Stopping …")
    except PartEnded as ended:
        say(f"{ended} The rest is stopped as well.")
        sys.exit(1)
    finally:
        parts.stop_all()


def say(line: str) -> None:
    print(line, flush=True)


# --- settings and data --------------------------------------------------------------------------------------


def choose_address() -> Address:
    """The free address to serve at, with settings that suit a trial where nothing else is set."""
    env = environ.Env()
    read.add_env_file(env, BASE_DIR / ".env")
    address = Address(read.text(env, "HOST", "127.0.0.1"), read.integer(env, "PORT", 8000, maximum=65_535))
    if not is_free(address):
        raise ConfigurationError(
            f"PORT {address.port} is taken: stop what listens there,"
            f" or choose another with `PORT={address.port + 1} make run`."
        )
    set_defaults(env, address)
    return address


def set_defaults(env: environ.Env, address: Address) -> None:
    defaults = {
        "DJANGO_SETTINGS_MODULE": "helpdesk.settings",
        "TRIAL": "on",
        "ALLOWED_HOSTS": f"localhost,127.0.0.1,{address.host}",
        "PYTHONUNBUFFERED": "1",
        "REHEARSAL_PORT": str(_rehearsal_port()),
    }
    if read.is_placeholder(read.text(env, "VOYAGE_API_KEY")):
        defaults["EMBEDDING_PROVIDER"] = "local"
    if read.is_placeholder(read.text(env, "ANTHROPIC_API_KEY")):
        defaults["ASSISTANT_BACKEND"] = "rehearsal"
    for name, value in defaults.items():
        if not read.text(env, name):
            os.environ[name] = value


def load_settings() -> None:
    import django

    django.setup()


def prepare_database() -> None:
    """Migrates and adds the demo tickets; both find nothing to do the next time."""
    from django.core.management import call_command

    say("Preparing the database …")
    call_command("migrate", verbosity=0, interactive=False)
    logging.getLogger("helpdesk.audit").setLevel(logging.WARNING)  # the accounts of the demo are no news
    call_command("seed_demo", stdout=io.StringIO())


def announce(address: Address) -> None:
    from tickets.demo import LOGIN, PASSWORD

    say(f"Open {address.url}/")
    say(f"Log in as {LOGIN} / {PASSWORD}")


def _rehearsal_port() -> int:
    usual = Address("127.0.0.1", 8011)
    return usual.port if is_free(usual) else _any_free_port()


def is_free(address: Address) -> bool:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server(address, family=family).close()
    except OSError:
        return False
    return True


def _any_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# --- the parts ----------------------------------------------------------------------------------------------


@dataclass
class Parts:
    """The processes beside this one, by name."""

    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_web(self, address: Address) -> None:
        uvicorn = ["-m", "uvicorn", "helpdesk.asgi:application", "--lifespan", "off", "--no-access-log"]
        where = ["--host", address.host, "--port", str(address.port), "--timeout-graceful-shutdown", "3"]
        self.start("The web server", [*uvicorn, *where])

    def start_others(self) -> None:
        from django.conf import settings

        # Without the checks, which would load the whole site into each of them.
        self.start("embed_worker", ["manage.py", "embed_worker", "--skip-checks"])
        if settings.ASSISTANT_BACKEND == "rehearsal":
            self.start("The rehearsal model", ["manage.py", "rehearsal_model"])

    def start(self, name: str, arguments: list[str]) -> None:
        """In a process group of its own: Ctrl-C in the terminal reaches us alone, and we stop the parts."""
        self.running[name] = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=BASE_DIR,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )

    def wait_until_answering(self, address: Address) -> None:
        deadline = time.monotonic() + SECONDS_TO_ANSWER
        while not answers(f"{address.url}/healthz?part=web"):
            self.check()
            if time.monotonic() > deadline:
                raise PartEnded(f"The web server has not answered for {SECONDS_TO_ANSWER} seconds.")
            time.sleep(0.1)

    def watch(self) -> NoReturn:
        while True:
            self.check()
            time.sleep(0.5)

    def check(self) -> None:
        for name, process in self.running.items():
            if process.poll() is not None:
                raise PartEnded(f"{name} has ended (exit code {process.returncode}).")

    def stop_all(self) -> None:
        """Asks all of them to end, and ends those that do not. A second Ctrl-C does not wait."""
        for process in self.running.values():
            process.terminate()
        deadline = time.monotonic() + SECONDS_TO_STOP
        for process in self.running.values():
            try:
                process.wait(max(deadline - time.monotonic(), 0))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                process.kill()
                process.wait()


def answers(url: str) -> bool:
    """Whether the site serves at all, whatever it says."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False


def _end_with_parent() -> None:
    """Linux tells the part when this process was killed, so that nothing is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
