"""Counts for people: exact as long as they are small, and never as slow as a table is long."""

from typing import Any

from django.db.models import QuerySet

MOST = 100


def bounded_count(rows: QuerySet[Any]) -> int:
    """How many there are, at most `MOST`."""
    return rows[:MOST].count()


def in_words(count: int) -> str:
    """ "7", or "99+" for what was not counted to its end."""
    return f"{MOST - 1}+" if count >= MOST else str(count)
