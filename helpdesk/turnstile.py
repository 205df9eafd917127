"""How many requests are worked on at once, so that a rush of them finds the database's few connections free.

Under ASGI each request has a thread of its own: two hundred streams that begin in the same second would all
ask the pool at once, and whoever waits there for too long is turned away. Here they wait for their turn
instead, which takes milliseconds. A request is through when its response begins: a stream holds no place
while it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[
    [Any, Any, Any], Awaitable[None]
]  # whoever implements ASGI names its types differently

AT_ONCE = 6
LEAVE = (
    "helpdesk.leave"  # in the scope: gives the place back early, for a view that waits without a connection
)


class Turnstile:
    def __init__(self, application: Application, at_once: int = AT_ONCE) -> None:
        self.application = application
        self.places = asyncio.Semaphore(at_once)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        await self.places.acquire()
        place = _Place(self.places)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                place.leave()
            await send(message)

        try:
            await self.application({**scope, LEAVE: place.leave}, receive, sending)
        finally:
            place.leave()


class _Place:
    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places: asyncio.Semaphore | None = places

    def leave(self) -> None:
        if self._places is not None:
            self._places.release()
            self._places = None
