"""Database connections, while somebody else's server is waited for."""

from collections.abc import Callable
from contextvars import ContextVar

from django.db import connections

# What else a request holds that others need. Set by whoever gave it; callable from any thread.
make_way: ContextVar[Callable[[], None]] = ContextVar("make_way", default=lambda: None)


def release_connections() -> None:
    """Give back what this thread holds, before a wait that may be long. Inside a transaction nothing is: the
    connection goes on with it, and whoever holds one counts.
    """
    held = connections.all(initialized_only=True)
    if any(connection.in_atomic_block for connection in held):
        return
    for connection in held:
        connection.close()
    make_way.get()()
