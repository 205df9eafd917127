"""The rehearsal model as an application and as a process."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from types import FrameType

import uvicorn

from assistant.messages_api.replies import Event, Pace, Reply, Text, play, tokens
from assistant.messages_api.server import MessagesApi
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import MessagesRequest
from assistant.rehearsal.rules import respond

DEFAULT_DELAY = 0.015  # seconds a token: lively, and slow enough to be seen
THINKING_TOKENS = 20  # the pause before the first token, in tokens


class RehearsalModel:
    """Answers by the rules, at a pace of `delay` seconds a token."""

    def __init__(self, delay: float = DEFAULT_DELAY) -> None:
        self.pace = Pace(first=delay * THINKING_TOKENS, token=delay)

    async def __call__(self, request: MessagesRequest, ledger: Ledger) -> AsyncIterator[Event]:
        reply = _within(respond(request.body), int(str(request.body["max_tokens"])))
        async for event in play(reply, request, ledger, self.pace):
            yield event


def application(delay: float = DEFAULT_DELAY) -> MessagesApi:
    """The ASGI application that `manage.py rehearsal_model` serves."""
    return MessagesApi(RehearsalModel(delay))


def serve(host: str, port: int, delay: float) -> None:
    """Serve until SIGINT or SIGTERM, then end the process with status 0."""
    # uvicorn stops on either signal and then raises it once more for the handler that was there before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    config = uvicorn.Config(
        application(delay),
        host=host,
        port=port,
        interface="asgi3",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _within(reply: Reply, limit: int) -> Reply:
    """The reply, its text cut where the output limit of the request is reached."""
    if len(reply.blocks) != 1 or not isinstance(reply.blocks[0], Text):
        return reply
    pieces = tokens(reply.blocks[0].text)
    if len(pieces) <= limit:
        return reply
    return Reply((Text("".join(pieces[:limit])),), stop_reason="max_tokens")
