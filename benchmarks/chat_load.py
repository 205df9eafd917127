"""Many conversations at once. `python benchmarks/chat_load.py [--conversations 200] [--rate 40]`

One web process (uvicorn, as in production) answers all of them; Claude is `scripted_claude.py`, a process of
its own with a fixed pace. The turns begin one after the other and last so long that in the end all of them
stream at once. Before them, in the same run, a bare asyncio client asks that server directly, at the same
moments: the difference of the times to the first token is what the product adds. Targets: no turn fails,
added median under 60 ms and 95 % under 300 ms, under 500 MB, at most 20 database connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import corpus
import psutil
import uvloop
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection

from assistant.models import Conversation, Turn
from assistant.services import post_message

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "The printer on the second floor does not react"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def process(*command: str, port: int, **environment: str) -> Iterator[psutil.Process]:
    """A server as a process of its own, once it listens on its port."""
    started = subprocess.Popen([sys.executable, *command], cwd=ROOT, env={**os.environ, **environment})
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if started.poll() is not None:
                raise SystemExit(f"{command[0]} ended with status {started.returncode}")
            time.sleep(0.1)
        yield psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(10)


def session_of(person: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def queued_turns(person: User, count: int) -> list[Turn]:
    settings.ASSISTANT_MESSAGES_PER_MINUTE = settings.ASSISTANT_DAILY_TOKENS_PER_USER = 0
    settings.ASSISTANT_CONCURRENT_TURNS_PER_USER = 0
    turns = []
    for number in range(count):
        conversation = Conversation.objects.create(user=person)
        key = f"load-{number}"
        posted = post_message(conversation=conversation, user=person, text=QUESTION, client_key=key)
        turns.append(posted.turn)
    return turns


async def first_token(port: int, request: bytes, mark: bytes, wait: float) -> float:
    """Seconds after `wait` until `mark` comes in; reads on to the end. By hand, as that costs the least."""
    await asyncio.sleep(wait)
    started, first, seen = time.perf_counter(), 0.0, b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    while chunk := await reader.read(65_536):
        if not first:
            seen += chunk
            assert seen.startswith(b"HTTP/1.1 200"), seen[:300]
            first = time.perf_counter() - started if mark in seen else 0.0
    writer.close()
    return first


def to_claude() -> bytes:
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": settings.ASSISTANT_MODEL, "max_tokens": 2048, "messages": messages, "stream": True}
    data = json.dumps(body).encode()
    head = (
        "POST /v1/messages HTTP/1.1\r\nHost: claude\r\nConnection: close\r\nX-Api-Key: load\r\n"
        "Anthropic-Version: 2023-06-01\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def to_us(turn: Turn, session: str) -> bytes:
    path = f"/chat/{turn.conversation_id}/turns/{turn.pk}/stream/"
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
    return head.encode()


async def all_bare(port: int, waits: list[float]) -> list[float]:
    return await asyncio.gather(*(first_token(port, to_claude(), b"text_delta", wait) for wait in waits))


async def all_turns(
    port: int, session: str, turns: list[Turn], web: psutil.Process, waits: list[float]
) -> tuple[list[float], int, int]:
    """First tokens in seconds, the largest memory in bytes and the most database connections seen."""
    load = asyncio.gather(
        *(
            first_token(port, to_us(turn, session), b"event: text", wait)
            for turn, wait in zip(turns, waits, strict=True)
        )
    )
    memory = connections = 0
    while not load.done():
        memory = max(memory, web.memory_info().rss)
        connections = max(connections, await asyncio.to_thread(connections_of_others))
        await asyncio.wait([load], timeout=0.5)
    return await load, memory, connections


def connections_of_others() -> int:
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return int(cursor.fetchone()[0]) - 1  # the main thread's own
    finally:
        connection.close()


def report(bare: list[float], product: list[float], memory: int, connections: int) -> None:
    outcomes = {status: Turn.objects.filter(status=status).count() for status in Turn.Status.values}
    print("turns                       ", {status: count for status, count in outcomes.items() if count})
    _print_times("first token, bare client", bare)
    _print_times("first token, product", product)
    # Both asked in the same order at the same moments of their runs, so like is compared with like.
    _print_times("added by the product", [one - other for one, other in zip(product, bare, strict=True)])
    print(f"memory of the web process    {memory / 1e6:7.0f} MB")
    print(f"database connections, most   {connections:7d}")


def _print_times(name: str, times: list[float]) -> None:
    middle, high = median(times) * 1000, quantiles(times, n=20)[-1] * 1000
    print(f"{name:28} median {middle:7.0f} ms   95 % {high:7.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--first", type=float, default=0.4, help="seconds to Claude's first token")
    parser.add_argument("--rate", type=float, default=40.0, help="tokens a second")
    parser.add_argument("--tokens", type=int, default=1_800)
    parser.add_argument("--spread", type=float, default=40.0, help="seconds over which the turns begin")
    options = parser.parse_args()
    claude_port, web_port = free_port(), free_port()
    pace = ["--first", str(options.first), "--rate", str(options.rate), "--tokens", str(options.tokens)]
    with (
        corpus.database(),
        process("benchmarks/scripted_claude.py", "--port", str(claude_port), *pace, port=claude_port),
        process(
            "-m", "uvicorn", "bench_site:application", "--app-dir", "benchmarks", "--port", str(web_port),
            "--log-level", "warning",
            port=web_port, BENCH_SITE_DATABASE=str(connection.settings_dict["NAME"]),
            BENCH_SITE_CLAUDE=f"http://127.0.0.1:{claude_port}",
        ) as web,
    ):  # fmt: skip
        person = corpus.agent()
        turns = queued_turns(person, options.conversations)
        waits = [options.spread * number / len(turns) for number in range(len(turns))]
        bare = uvloop.run(all_bare(claude_port, waits))
        product, memory, connections = uvloop.run(all_turns(web_port, session_of(person), turns, web, waits))
        report(bare, product, memory, connections)


if __name__ == "__main__":
    main()
