"""The time at which things happen to tickets: now, or, for imports and demo data, when they once happened."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.utils import timezone

_moment: ContextVar[datetime | None] = ContextVar("tickets_moment", default=None)


def now() -> datetime:
    return _moment.get() or timezone.now()


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """Let everything inside the block happen at `moment` (aware), as the history will show it."""
    token = _moment.set(moment)
    try:
        yield
    finally:
        _moment.reset(token)
