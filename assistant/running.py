"""The turns that this process is answering, so that "stop" takes effect at once (other processes: by
heartbeat).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_tasks: dict[int, asyncio.Task[Any]] = {}


@contextmanager
def registered(turn_id: int, task: asyncio.Task[Any]) -> Iterator[None]:
    _tasks[turn_id] = task
    try:
        yield
    finally:
        _tasks.pop(turn_id, None)


def count() -> int:
    return len(_tasks)


def cancel(turn_id: int) -> bool:
    """Stop the task of this turn if it runs here; callable from any thread."""
    task = _tasks.get(turn_id)
    if task is None or task.get_loop().is_closed():
        return False
    task.get_loop().call_soon_threadsafe(task.cancel)
    return True
