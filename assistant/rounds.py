"""What each web process does from time to time without being asked."""

from __future__ import annotations

import time
from threading import Thread

import structlog
from django.db import DatabaseError, InterfaceError

from assistant.store import close_abandoned_turns
from tickets.connections import release_connections

log = structlog.get_logger("assistant.rounds")

ROUND_SECONDS = 20.0


def start_rounds() -> Thread:
    thread = Thread(target=_go_round, name="rounds", daemon=True)
    thread.start()
    return thread


def _go_round() -> None:
    while True:
        time.sleep(ROUND_SECONDS)
        look_after_turns()


def look_after_turns() -> None:
    """Close the turns of processes that died. A look at their conversation does so as well, but nobody may
    ever look."""
    try:
        closed = close_abandoned_turns()
        if closed:
            log.warning("closed turns whose process had died", turns=closed)
    except (DatabaseError, InterfaceError) as error:
        log.warning("no look at the turns", reason=str(error).strip().split("\n")[0])
    finally:
        release_connections()
