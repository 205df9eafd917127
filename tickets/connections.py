"""Database connections, while somebody else's server is waited for."""

from django.db import connections


def release_connections() -> None:
    """Give back what this thread holds, before a wait that may be long. In a transaction it is kept."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
