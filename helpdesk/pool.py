"""The connections of a web process, kept open and shared by its threads.

Under ASGI each request has a thread of its own. Without a pool it would have a connection of its own as well,
and pay for it: Postgres starts a process for each, and that one reads the catalogue anew. Commands have one
thread and stay without.
"""

from django.conf import settings

# As long waits a request for a connection, be it that all are taken or that the database is away.
WAIT_SECONDS = 3.0


def use_pool() -> None:
    """Let all databases be reached through a pool. To be called before the first connection."""
    pool = {"min_size": 2, "max_size": settings.DATABASE_CONNECTIONS, "timeout": WAIT_SECONDS}
    for database in settings.DATABASES.values():
        database.setdefault("OPTIONS", {})["pool"] = pool
