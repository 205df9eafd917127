"""How long does a turn take beside the model? `python benchmarks/turn.py [--turns 20] [--tickets 100]`

One process serves the site and the rehearsal model over HTTP, as in life. A turn is timed from the click (the
POST of the message) to the last token on the page; what the rehearsal model itself took, from each request to
the last byte of its answer, is taken off. Each turn describes a problem, so it holds a search with the local
embedding model and two model calls. Milliseconds; the target is a median under 150.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import corpus
import httpx
import uvicorn
import uvloop
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection

from assistant.db import run_db
from assistant.models import Conversation, Turn
from assistant.rehearsal.model import application
from tickets.services import create_ticket

PROBLEMS = [
    "The printer on the second floor does not react",
    "Das WLAN im Keller ist langsam",
    "VPN drops every hour",
]


class Timed:
    """An ASGI application with the seconds it spent between each request and the last byte of its answer."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.seconds = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started = perf_counter()
        await self.app(scope, receive, send)
        self.seconds += perf_counter() - started


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    # As uvicorn makes its own: without the protocol's name asyncio would leave Nagle's delay on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await task


def prepare(tickets: int) -> str:
    """A person with tickets in the index; the cookie that logs them in."""
    person = corpus.agent()
    for number in range(tickets):
        title = f"{PROBLEMS[number % len(PROBLEMS)]} ({number})"
        create_ticket(reporter=person, title=title, description="Since this morning.", source="import")
    call_command("embed_worker", "--once")
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    assert session.session_key
    return session.session_key


async def one_turn(browser: httpx.AsyncClient, model: Timed, text: str) -> tuple[float, float]:
    """Milliseconds of a turn to its last token, and of the model."""
    conversation = await run_db(Conversation.objects.create, user=await run_db(corpus.agent))
    model.seconds = 0.0
    started = perf_counter()
    key = f"bench-{conversation.pk}"
    posted = await browser.post(f"/chat/{conversation.pk}/messages/", data={"text": text, "client_key": key})
    assert posted.status_code < 400, posted.status_code
    address = re.search(r"/chat/\d+/turns/(\d+)/stream/", posted.text)
    assert address, posted.text
    async with browser.stream("GET", address[0]) as stream:
        async for chunk in stream.aiter_bytes():
            if b"event: text\n" in chunk:
                total = perf_counter() - started
    ended = await run_db(Turn.objects.get, pk=address[1])
    assert ended.status == Turn.Status.DONE, (ended.status, ended.error)
    return total * 1000, model.seconds * 1000


async def measure(turns: int, session: str) -> list[tuple[float, float]]:
    from helpdesk.asgi import application as site  # as deployed; it wants a process without connections

    model = Timed(application(0.005, settings.ASSISTANT_MODEL))
    async with served(model) as model_address, served(site) as address:
        settings.ANTHROPIC_BASE_URL = model_address
        cookies = {settings.SESSION_COOKIE_NAME: session}
        async with httpx.AsyncClient(base_url=address, cookies=cookies, timeout=60) as browser:
            token = (await browser.get("/chat/")).cookies.get(settings.CSRF_COOKIE_NAME)
            browser.headers["X-CSRFToken"] = token or ""
            browser.headers["HX-Request"] = "true"
            for text in PROBLEMS:  # to warm up
                await one_turn(browser, model, text)
            return [await one_turn(browser, model, PROBLEMS[n % len(PROBLEMS)]) for n in range(turns)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--tickets", type=int, default=100)
    options = parser.parse_args()
    settings.ASSISTANT_MESSAGES_PER_MINUTE = settings.ASSISTANT_DAILY_TOKENS_PER_USER = 0
    with corpus.database():
        session = prepare(options.tickets)
        connection.close()
        measured = uvloop.run(measure(options.turns, session))
    product = [total - model for total, model in measured]
    print(f"turns                       {len(measured)}")
    print(f"whole turn, median          {median(total for total, _model in measured):7.1f} ms")
    print(f"the model's share, median   {median(model for _total, model in measured):7.1f} ms")
    print(f"the product's share, median {median(product):7.1f} ms   (target: under 150)")
    print(f"the product's share, 95 %   {quantiles(product, n=20)[-1]:7.1f} ms")


if __name__ == "__main__":
    main()
