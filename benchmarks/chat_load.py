"""Many conversations at once. `python benchmarks/chat_load.py [--conversations 200] [--rate 40]`

One web process (uvicorn, as in production) answers all of them; Claude is `scripted_claude.py`, a process of
its own with a fixed pace. Before it, in the same run, a bare asyncio client asks that server directly, as
often and as fast: the difference of the times to the first token is what the product adds. Targets: no turn
fails, added median under 60 ms and 95 % under 300 ms, under 500 MB, at most 20 database connections.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import corpus
import httpx
import psutil
from anthropic import AsyncAnthropic
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


async def bare_first_token(client: AsyncAnthropic, wait: float) -> float:
    await asyncio.sleep(wait)
    started = time.perf_counter()
    messages: Any = [{"role": "user", "content": QUESTION}]
    first = 0.0
    async with client.messages.stream(
        model=settings.ASSISTANT_MODEL, max_tokens=2048, messages=messages
    ) as stream:
        async for _text in stream.text_stream:
            first = first or time.perf_counter() - started
    return first * 1000


async def product_first_token(browser: httpx.AsyncClient, turn: Turn, wait: float) -> float:
    await asyncio.sleep(wait)
    started = time.perf_counter()
    first = 0.0
    path = f"/chat/{turn.conversation_id}/turns/{turn.pk}/stream/"
    async with browser.stream("GET", path) as stream:
        assert stream.status_code == 200, stream.status_code
        async for line in stream.aiter_lines():
            if line == "event: text":
                first = first or time.perf_counter() - started
    return first * 1000


async def all_bare(address: str, count: int, spread: float) -> list[float]:
    async with AsyncAnthropic(base_url=address, api_key="load", max_retries=0) as client:
        return await asyncio.gather(*(bare_first_token(client, spread * n / count) for n in range(count)))


async def all_turns(
    address: str, session: str, turns: list[Turn], web: psutil.Process, spread: float
) -> tuple[list[float], int, int]:
    """First tokens in ms, the largest memory in bytes and the most database connections seen meanwhile."""
    limits = httpx.Limits(max_connections=len(turns) + 1)
    cookies = {settings.SESSION_COOKIE_NAME: session}
    async with httpx.AsyncClient(base_url=address, cookies=cookies, timeout=120, limits=limits) as browser:
        (await browser.get("/chat/")).raise_for_status()  # the first request loads what is loaded lazily
        waits = [spread * n / len(turns) for n in range(len(turns))]
        load = asyncio.gather(*(product_first_token(browser, *one) for one in zip(turns, waits, strict=True)))
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
    added = sorted(one - other for one, other in zip(sorted(product), sorted(bare), strict=True))
    _print_times("added by the product", added)
    print(f"memory of the web process    {memory / 1e6:7.0f} MB")
    print(f"database connections, most   {connections:7d}")


def _print_times(name: str, times: list[float]) -> None:
    print(f"{name:28} median {median(times):7.0f} ms   95 % {quantiles(times, n=20)[-1]:7.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--first", type=float, default=0.4, help="seconds to Claude's first token")
    parser.add_argument("--rate", type=float, default=40.0, help="tokens a second")
    parser.add_argument("--tokens", type=int, default=80)
    parser.add_argument("--spread", type=float, default=10.0, help="seconds over which the turns begin")
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
        bare = asyncio.run(all_bare(f"http://127.0.0.1:{claude_port}", options.conversations, options.spread))
        address = f"http://127.0.0.1:{web_port}"
        product, memory, connections = asyncio.run(
            all_turns(address, session_of(person), turns, web, options.spread)
        )
        report(bare, product, memory, connections)


if __name__ == "__main__":
    main()
