"""Where searches read: a replica of the database, if SEARCH_DATABASE_URL names one.

Only the statement that compares runs there; what is found is read from the primary, with the permissions of
the person who asks, and so is everything that is written. While the replica is away, searches read from the
primary: to spare it is worth less than to know whether a ticket is a duplicate. The health page says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection, connections

ALIAS = "search"
AWAY_SECONDS = 30.0  # no search waits for a replica that has just been away

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Seconds between what the primary has sent and what searches see; 0 as well where nothing is written.
LAG = """
    SELECT CASE WHEN NOT pg_is_in_recovery() OR pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
        ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END::float8"""


class _Replica:
    """Until when this process leaves the replica alone, by `monotonic()`."""

    away_until = 0.0


def is_configured() -> bool:
    return ALIAS in connections.settings


def read(query: Callable[[Any], T]) -> T:
    """What `query` reads by the cursor it is given; where the replica fails it is asked a second time."""
    if is_configured() and monotonic() >= _Replica.away_until:
        try:
            with connections[ALIAS].cursor() as cursor:
                return query(cursor)
        except (OperationalError, InterfaceError) as error:
            logger.warning("searches read from the primary: %s", error)
            _Replica.away_until = monotonic() + AWAY_SECONDS
            connections[ALIAS].close()
    with connection.cursor() as cursor:
        return query(cursor)


def lag_seconds() -> float:
    """Raises `OperationalError` while the replica is away."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(LAG)
        seconds: float = cursor.fetchone()[0]
        return seconds
