"""The ORM from async code: one bounded pool of threads, so that many streams need few connections.

Searches may wait for a provider on the network; they have threads of their own, so that a slow provider never
holds up the short reads and writes of all other turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connections
from django.utils import timezone, translation

P = ParamSpec("P")
T = TypeVar("T")

DB_THREADS = 8
SEARCH_THREADS = 4

_db = ThreadPoolExecutor(DB_THREADS, thread_name_prefix="assistant-db")
_search = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="assistant-search")


async def run_db(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short ORM function in the pool, in the caller's language and time zone.

    When cancelled, waits for it first: a write is never left behind unseen.
    """
    work = asyncio.wrap_future(_db.submit(copy_context().run, _for_thread(partial(fn, *args, **kwargs))))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # the cancellation matters more; seen, so that nobody warns about it
        raise


async def run_search(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a search, which may wait for the network. When cancelled, its result is thrown away."""
    work = _search.submit(copy_context().run, _for_thread(partial(fn, *args, **kwargs)))
    return await asyncio.wrap_future(work)


def _for_thread(fn: Callable[[], T]) -> Callable[[], T]:
    """Takes language and time zone along, which Django keeps by thread, and gives connections back."""
    language, zone = translation.get_language(), timezone.get_current_timezone()

    def run() -> T:
        _give_back_connections()
        try:
            with translation.override(language), timezone.override(zone):
                return fn()
        finally:
            _give_back_connections()

    return run


def _give_back_connections() -> None:
    """To the pool of the process, those of a replica as well."""
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()
