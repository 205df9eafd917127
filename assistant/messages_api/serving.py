"""A Messages API application as a process of its own."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import uvicorn

from assistant.messages_api.server import MessagesApi


def serve(application: MessagesApi, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM, then end the process with status 0 within about a second."""
    # uvicorn stops on either signal and then raises it once more for the handler that was there before.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    config = uvicorn.Config(
        application,
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
