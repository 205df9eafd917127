"""Requests wait for a place, a stream holds none, and whatever fails gives its place back."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from helpdesk.turnstile import LEAVE, Message, Receive, Send, Turnstile


async def nothing() -> Message:
    return {"type": "http.disconnect"}


async def ignored(message: Message) -> None:
    """Where the tests send their responses."""


def application(before: Callable[[Message], Awaitable[None]], after: asyncio.Event) -> Turnstile:
    """Works by `before`, begins its response, and streams until `after`."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await before(scope)
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
    streams = [asyncio.create_task(app({"type": "http"}, nothing, ignored)) for _ in range(8)]
    await asyncio.sleep(0.3)
    assert (most, working) == (2, 0)
    assert not any(stream.done() for stream in streams)
    over.set()
    await asyncio.gather(*streams)


async def test_a_place_is_given_back_early_on_request_and_after_a_failure() -> None:
    over = asyncio.Event()

    async def leave_and_wait(scope: Message) -> None:
        scope[LEAVE]()
        if scope.get("fails"):
            raise RuntimeError
        await over.wait()

    app = application(leave_and_wait, over)
    waiting = [asyncio.create_task(app({"type": "http"}, nothing, ignored)) for _ in range(4)]
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(app({"type": "http", "fails": True}, nothing, ignored), 1)
    assert app.places._value == 2
    over.set()
    await asyncio.gather(*waiting)
    assert app.places._value == 2
