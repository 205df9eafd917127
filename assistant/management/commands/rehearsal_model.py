"""`manage.py rehearsal_model`: a scripted model to try the product without a key."""

from __future__ import annotations

import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from assistant.messages_api.serving import serve
from assistant.rehearsal.model import DEFAULT_DELAY, application


class Command(BaseCommand):
    help = (
        "Serve the rehearsal model, a scripted stand-in for Claude, on this machine. "
        "It needs neither a key nor the database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument(
            "--port", type=int, default=settings.REHEARSAL_PORT, help="default: REHEARSAL_PORT"
        )
        parser.add_argument(
            "--delay", type=float, default=DEFAULT_DELAY, help="seconds a token (default 0.015)"
        )

    def handle(self, *args: Any, host: str, port: int, delay: float, **options: Any) -> None:
        if delay < 0:
            raise CommandError("--delay must not be negative.")
        _check_free(host, port)
        self.stdout.write(f"The rehearsal model (not Claude) listens on http://{host}:{port}")
        self.stdout.flush()
        serve(application(delay, settings.ASSISTANT_MODEL), host, port)


def _check_free(host: str, port: int) -> None:
    """Say in one sentence what uvicorn would only log."""
    try:
        with socket.create_server((host, port)):
            pass
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Cannot listen on {host}:{port} ({error}). Choose another port with --port or REHEARSAL_PORT."
        ) from error
