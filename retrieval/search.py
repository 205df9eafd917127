"""Search by meaning: which existing tickets are like this text?"""

from __future__ import annotations

from collections.abc import Collection

from tickets.permissions import Person

from .results import Band, Coverage, Hit, Outcome, SearchOutcome

__all__ = ["Band", "Coverage", "Hit", "Outcome", "SearchOutcome", "find_similar"]


def find_similar(
    text: str,
    *,
    user: Person,
    limit: int | None = None,
    exclude: Collection[int] | None = None,
    statuses: Collection[str] | None = None,
) -> SearchOutcome:
    """Tickets like `text` among those that `user` may see, best first. Never raises for a provider's failure."""
    raise NotImplementedError
