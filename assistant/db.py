"""The ORM from async code: one bounded pool of threads, so that many streams need few connections.

Searches may wait for a provider on the network; they have threads of their own, so that a slow provider never
holds up the short reads and writes of all other turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

DB_THREADS = 8
SEARCH_THREADS = 4

_db = ThreadPoolExecutor(DB_THREADS, thread_name_prefix="assistant-db")
_search = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="assistant-search")


async def run_db(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short ORM function in the pool. When cancelled, waits for it first: a write is never left behind."""
    work = asyncio.wrap_future(_db.submit(_with_fresh_connection, fn, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # the cancellation matters more; seen, so that nobody warns about it
        raise


async def run_search(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a search, which may wait for the network. When cancelled, its result is thrown away."""
    return await asyncio.wrap_future(_search.submit(_with_fresh_connection, fn, *args, **kwargs))


def _with_fresh_connection(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return fn(*args, **kwargs)
    finally:
        close_old_connections()
