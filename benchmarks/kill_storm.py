"""What is left when processes die under load? `python benchmarks/kill_storm.py [--seconds 300] [--seed 1]`

Eight workers and two web processes, of which one or several die by SIGKILL every few seconds, while people
create and change tickets over the API and in SQL, and talk to the rehearsal model. Whoever is cut off asks
again, with the same key, or leaves. A minute after the last kill

- each acknowledged ticket exists once, with the text that was acknowledged last and the vector of that text,
- each ticket that a conversation created belongs to exactly one call of the tool,
- no turn is waiting or running,
- `manage.py check_index` and /healthz are green.

Exits with 1 otherwise. The stand-in of the embedding provider answers with vectors of the local model, so
that the probes of the health measure something.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import corpus
import httpx
import numpy as np
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from assistant.models import ToolCall, Turn
from retrieval.documents import document
from retrieval.embedders.local import LocalEmbedder
from retrieval.models import TicketEmbedding
from tests.fakes.voyage import KEY, VoyageServer
from tests.processes import database_url
from tickets.api.models import ApiToken
from tickets.models import Ticket

ROOT = Path(__file__).resolve().parent.parent
WORKERS, CLERKS, TALKERS = 8, 3, 3
WEB_PORTS = (8741, 8742)
MODEL_PORT = 8743
DIMENSIONS = 512
REST_SECONDS = 60
START_SECONDS = 20
PAUSE = (4.0, 10.0)  # seconds between two kills
PATIENCE = 60  # how often somebody asks again
AT_ONCE = (1, 1, 1, 2, 4)
THINGS = ("printer", "laptop", "Beamer", "phone", "VPN", "Postfach", "shared drive", "Türöffner", "payroll")
FAULTS = ("is dead", "reagiert nicht", "asks for a password", "stürzt ab", "is slow", "macht Lärm", "is full")
REMARKS = (
    "since this morning",
    "seit gestern",
    "for all of the team",
    "nur bei mir",
    "😱",
    "after the update",
)
CREATE = "No, create a new ticket please"


class Processes:
    """The parts of the product; whichever dies is started again."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.commands: dict[str, list[str]] = {"model": ["manage.py", "rehearsal_model"]}
        for number in range(WORKERS):
            self.commands[f"worker {number}"] = ["manage.py", "embed_worker", "--poll", "1"]
        for port in WEB_PORTS:
            web = ["-m", "uvicorn", "helpdesk.asgi:application", "--port", str(port)]
            self.commands[f"web {port}"] = [*web, "--lifespan", "off", "--no-access-log"]
        self.mortal = [name for name in self.commands if name != "model"]
        self.running = {name: self._started(name) for name in self.commands}

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *self.commands[name]]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=quiet, stderr=quiet)

    def kill(self, names: list[str]) -> None:
        for name in names:
            self.running[name].send_signal(signal.SIGKILL)
        for name in names:
            self.running[name].wait()
            self.running[name] = self._started(name)

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


class Person(threading.Thread):
    """Somebody who asks one of the web processes, and again when the answer does not come."""

    def __init__(self, name: str, seed: int, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.draw = random.Random(f"{seed} {name}")
        self.over = over
        self.user = User.objects.create_superuser(name, password=None)
        self.broken = 0
        self.complaints: list[str] = []

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.act()
            except httpx.TransportError:
                self.broken += 1
        connection.close()

    def act(self) -> None:
        raise NotImplementedError

    def sentence(self) -> str:
        words = (self.draw.choice(words) for words in (THINGS, FAULTS, REMARKS))
        return f"{' '.join(words)} ({uuid.uuid4().hex[:8]})"

    def ask(self, method: str, path: str, *, attempts: int = PATIENCE, **more: Any) -> httpx.Response:
        for _attempt in range(attempts):
            port = self.draw.choice(WEB_PORTS)
            try:
                answer = httpx.request(method, f"http://127.0.0.1:{port}{path}", timeout=30, **more)
                if answer.status_code not in (409, 429, 500, 502, 503, 504):
                    return answer
            except httpx.TransportError:
                pass
            self.broken += 1
            time.sleep(0.3)
        raise httpx.ConnectError(f"no answer to {method} {path}")

    def complain(self, what: str, answer: httpx.Response) -> None:
        self.complaints.append(f"{what}: {answer.status_code} {answer.text[-1200:]}")


class Clerk(Person):
    """Creates tickets over the API and changes them there or past the product, in SQL."""

    def __init__(self, name: str, seed: int, over: threading.Event) -> None:
        super().__init__(name, seed, over)
        _token, secret = ApiToken.issue(user=self.user, name="storm", by=self.user)
        self.headers = {"Authorization": f"Bearer {secret}"}
        self.acknowledged: dict[int, tuple[str, str]] = {}

    def act(self) -> None:
        content = {"title": self.sentence(), "description": self.sentence()}
        headers = self.headers | {"Idempotency-Key": uuid.uuid4().hex}
        answer = self.ask("POST", "/api/v1/tickets/", headers=headers, json=content)
        if answer.status_code != 201:
            self.complain("creation", answer)
            return
        ticket = answer.json()
        self.acknowledged[ticket["id"]] = (content["title"], content["description"])
        self.draw.choice((self.change, self.rewrite, lambda _ticket: None))(ticket)

    def change(self, ticket: dict[str, Any]) -> None:
        """Over the API. A change that is asked for twice may have been made the first time: 412 then."""
        path, description = f"/api/v1/tickets/{ticket['id']}/", self.sentence()
        headers = self.headers | {"If-Match": self.ask("GET", path, headers=self.headers).headers["ETag"]}
        answer = self.ask("PATCH", path, headers=headers, json={"description": description})
        if answer.status_code not in (200, 412):
            self.complain("change", answer)
        self.acknowledged[ticket["id"]] = (ticket["title"], description)

    def rewrite(self, ticket: dict[str, Any]) -> None:
        description = self.sentence()
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tickets_ticket SET description = %s WHERE id = %s", [description, ticket["id"]]
            )
        self.acknowledged[ticket["id"]] = (ticket["title"], description)


class Talker(Person):
    """Describes problems in the chat, and asks for tickets. Some leave in the middle of an answer."""

    def __init__(self, name: str, seed: int, over: threading.Event) -> None:
        super().__init__(name, seed, over)
        client = Client()
        client.force_login(self.user)
        token = "a" * 32
        self.browser: dict[str, Any] = {
            "cookies": {settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value}
            | {settings.CSRF_COOKIE_NAME: token},
            "headers": {"X-CSRFToken": token},
        }

    def act(self) -> None:
        page = self.say("/chat/", self.sentence())
        if page is None:
            return
        self.listen(page, attempts=self.patience())
        if self.draw.random() < 0.6 and self.say(f"{page}messages/", CREATE):
            self.listen(page, attempts=self.patience())

    def patience(self) -> int:
        return PATIENCE if self.draw.random() < 0.8 else 1

    def say(self, path: str, text: str) -> str | None:
        """Post a message; the page of its conversation."""
        answer = self.ask("POST", path, data={"text": text, "client_key": uuid.uuid4().hex}, **self.browser)
        page = answer.headers.get("Location", "").partition("#")[0]
        if answer.status_code != 303 or not page.startswith("/chat/"):
            self.complain("message", answer)
            return None
        return page

    def listen(self, page: str, attempts: int) -> None:
        """Read the answer that is due, as the page does: whoever is cut off connects again."""
        for turn in Turn.objects.active().filter(conversation=int(page.strip("/").split("/")[1])):
            try:
                self.ask("GET", f"{page}turns/{turn.pk}/stream/", attempts=attempts, **self.browser)
            except httpx.TransportError:
                self.broken += 1

    def come_back(self) -> None:
        """Open each conversation in which something still waits for an answer."""
        waiting = Turn.objects.active().filter(conversation__user=self.user)
        for conversation in set(waiting.values_list("conversation", flat=True)):
            self.ask("GET", f"/chat/{conversation}/", **self.browser)
            self.listen(f"/chat/{conversation}/", PATIENCE)


@lru_cache(maxsize=1)
def model() -> LocalEmbedder:
    return LocalEmbedder(threads=1)


@lru_cache(maxsize=100_000)
def meaning(text: str, _dimensions: int) -> list[float]:
    return [round(float(value), 6) for value in model().embed_query(text)]


def wrong_vectors() -> int:
    """Tickets without the vector of exactly their text."""
    stored = {row.ticket_id: row for row in TicketEmbedding.objects.all()}
    wrong = 0
    for ticket in Ticket.objects.all():
        row = stored.get(ticket.pk)
        expected = meaning(document(ticket.title, ticket.description), DIMENSIONS)
        right = (
            row is not None
            and row.embedding is not None
            and bytes(row.content_hash) == bytes(ticket.content_hash)
            and np.allclose(np.asarray(row.embedding, dtype=np.float32), expected, atol=2e-3)
        )
        wrong += not right
    return wrong


def violations(clerks: list[Clerk], talkers: list[Talker]) -> dict[str, Any]:
    there = {
        pk: (title, text) for pk, title, text in Ticket.objects.values_list("pk", "title", "description")
    }
    acknowledged = {pk: content for clerk in clerks for pk, content in clerk.acknowledged.items()}
    titles = Counter(title for title, _text in there.values())
    created = Counter(ToolCall.objects.filter(creates=True).values_list("ticket", flat=True))
    in_chat = set(Ticket.objects.filter(source=Ticket.Source.CHAT).values_list("pk", flat=True))
    return {
        "tickets lost": len(acknowledged.keys() - there.keys()),
        "changes lost": sum(there.get(pk, content) != content for pk, content in acknowledged.items()),
        "tickets doubled": sum(titles[title] > 1 for title, _text in acknowledged.values()),
        "tickets of no call, calls of no ticket": len(in_chat ^ created.keys()),
        "vectors missing or wrong": wrong_vectors(),
        "turns not closed": Turn.objects.active().count(),
        "complaints": [complaint for person in (*clerks, *talkers) for complaint in person.complaints][:3],
    }


def is_green(environment: dict[str, str]) -> tuple[bool, str]:
    check = [sys.executable, "manage.py", "check_index"]
    done = subprocess.run(check, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    answers = [httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=10) for port in WEB_PORTS]
    said = "\n".join([done.stdout, done.stderr, *[answer.text for answer in answers]])
    return done.returncode == 0 and all(answer.status_code == 200 for answer in answers), said


def seconds_to_green(environment: dict[str, str], since: float) -> float | None:
    """Seconds from the last kill until nothing speaks against the product; None: not within a minute."""
    said = ""
    while time.monotonic() - since < REST_SECONDS:
        try:
            green, said = is_green(environment)
        except httpx.TransportError as error:  # it is still starting
            green, said = False, f"{type(error).__name__}: {error}"
        if green:
            return time.monotonic() - since
        time.sleep(1)
    print(said)
    return None


@contextmanager
def product(provider: VoyageServer) -> Iterator[Processes]:
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "helpdesk.settings",
        "ENV_FILE": "",
        "TRIAL": "on",
        "ALLOWED_HOSTS": "127.0.0.1",
        "SECRET_KEY": settings.SECRET_KEY,
        "DATABASE_URL": database_url(),
        "ASSISTANT_BACKEND": "rehearsal",
        "REHEARSAL_PORT": str(MODEL_PORT),
        "ASSISTANT_MESSAGES_PER_MINUTE": "100000",
        "ASSISTANT_CONCURRENT_TURNS_PER_USER": "1000",
        "ASSISTANT_DAILY_TOKENS_PER_USER": "0",
        "EMBEDDING_PROVIDER": "voyage",
        "VOYAGE_API_KEY": KEY,
        "VOYAGE_BASE_URL": provider.url,
        "VOYAGE_DIMENSIONS": str(DIMENSIONS),
    }
    processes = Processes(environment)
    try:
        yield processes
    finally:
        processes.stop()


def storm(seconds: float, seed: int, processes: Processes) -> bool:
    over, draw, kills = threading.Event(), random.Random(seed), Counter[str]()
    clerks = [Clerk(f"clerk{number}", seed, over) for number in range(CLERKS)]
    talkers = [Talker(f"talker{number}", seed, over) for number in range(TALKERS)]
    people: list[Person] = [*clerks, *talkers]
    time.sleep(START_SECONDS)
    for person in people:
        person.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(draw.uniform(*PAUSE))
        names = draw.sample(processes.mortal, draw.choice(AT_ONCE))
        processes.kill(names)
        kills.update(name.split()[0] for name in names)
    last_kill = time.monotonic()
    over.set()
    for person in people:
        person.join(REST_SECONDS)
    for talker in talkers:
        talker.come_back()
    green = seconds_to_green(processes.environment, last_kill)
    found = violations(clerks, talkers)
    turns = Counter(" ".join(pair).strip() for pair in Turn.objects.values_list("status", "error"))
    report = {
        "seconds": seconds,
        "seed": seed,
        "kills": dict(kills),
        "requests that broke": sum(person.broken for person in people),
        "tickets over the API": sum(len(clerk.acknowledged) for clerk in clerks),
        "tickets from conversations": Ticket.objects.filter(source=Ticket.Source.CHAT).count(),
        "turns": dict(turns),
        "seconds to green": green and round(green, 1),
    }
    print(json.dumps(report | found, indent=2, ensure_ascii=False))
    return green is not None and not any(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with (
        corpus.database(),
        VoyageServer(seconds=0.05, vector=meaning) as provider,
        product(provider) as processes,
    ):
        passed = storm(options.seconds, options.seed, processes)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
