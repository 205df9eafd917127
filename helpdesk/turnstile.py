"""How many requests are worked on at once, so that a rush of them finds the database's few connections free.

Under ASGI each request has a thread of its own: two hundred streams that begin in the same second would all
ask the pool at once, and whoever waits there for too long is turned away. Here they wait for their turn
instead, which takes milliseconds. Who waits for somebody else holds no place: neither a client that is slow
to send, nor a stream that runs, nor a search whose embedding takes its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tickets.connections import make_way

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[
    [Any, Any, Any], Awaitable[None]
]  # whoever implements ASGI names its types differently

AT_ONCE = 6


class Turnstile:
    def __init__(self, application: Application, at_once: int = AT_ONCE) -> None:
        self.application = application
        self.places = asyncio.Semaphore(at_once)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        place = _Place(self.places)
        make_way.set(place.leave_from_thread)

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                await place.take()
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                place.leave()
            await send(message)

        try:
            await self.application(scope, receiving, sending)
        finally:
            place.leave()


class _Place:
    """One request's place: taken once, when the request is there, and left once."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._loop = asyncio.get_running_loop()
        self._is_taken = False

    async def take(self) -> None:
        await self._places.acquire()
        self._is_taken = True

    def leave(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._places.release()

    def leave_from_thread(self) -> None:
        self._loop.call_soon_threadsafe(self.leave)
