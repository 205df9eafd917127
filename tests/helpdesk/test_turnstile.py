"""Requests wait for a place; who waits for somebody else holds none, whatever fails gives its place back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from helpdesk.turnstile import Message, Receive, Send, Turnstile
from tickets.connections import release_connections

HTTP = {"type": "http"}


async def whole() -> Message:
    """A request that has arrived."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def ignored(message: Message) -> None:
    """Where the tests send their responses."""


def application(work: Callable[[Message], Awaitable[None]], after: asyncio.Event) -> Turnstile:
    """Reads the request, works on it, begins its response, and streams until `after`."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await work(scope)
        await send({"type": "http.response.start", "status": 200})
        await after.wait()

    return Turnstile(app, at_once=2)


async def test_only_so_many_are_worked_on_at_once_and_streams_hold_no_place() -> None:
    working, most, over = 0, 0, asyncio.Event()

    async def work(scope: Message) -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.01)
        working -= 1

    app = application(work, over)
    streams = [asyncio.create_task(app(HTTP, whole, ignored)) for _ in range(8)]
    await asyncio.sleep(0.3)
    assert (most, working) == (2, 0)
    assert not any(stream.done() for stream in streams)
    over.set()
    await asyncio.gather(*streams)


async def test_who_waits_for_another_server_holds_no_place() -> None:
    """And gives it back once, also if the wait fails."""
    over = asyncio.Event()

    async def wait_for_provider(scope: Message) -> None:
        await asyncio.to_thread(release_connections)
        if scope.get("fails"):
            raise RuntimeError
        await over.wait()

    app = application(wait_for_provider, over)
    waiting = [asyncio.create_task(app(HTTP, whole, ignored)) for _ in range(4)]
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(app(HTTP | {"fails": True}, whole, ignored), 1)
    assert app.places._value == 2
    over.set()
    await asyncio.gather(*waiting)
    assert app.places._value == 2


async def test_who_is_slow_to_send_holds_no_place() -> None:
    over, arrived = asyncio.Event(), asyncio.Event()
    sent: list[asyncio.Task[None]] = []

    def slow() -> Receive:
        parts = iter([True, False])

        async def receive() -> Message:
            more = next(parts)
            if not more:
                await arrived.wait()
            return {"type": "http.request", "body": b"x", "more_body": more}

        return receive

    async def work(scope: Message) -> None:
        """Nothing that takes time."""

    app = application(work, over)
    over.set()
    sent = [asyncio.create_task(app(HTTP, slow(), ignored)) for _ in range(4)]
    await asyncio.wait_for(app(HTTP, whole, ignored), 1)
    arrived.set()
    await asyncio.wait_for(asyncio.gather(*sent), 1)
    assert app.places._value == 2


async def test_who_leaves_before_the_request_is_there_has_taken_no_place() -> None:
    over = asyncio.Event()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def work(scope: Message) -> None:
        raise RuntimeError

    app = application(work, over)
    with pytest.raises(RuntimeError):
        await app(HTTP, gone, ignored)
    assert app.places._value == 2
