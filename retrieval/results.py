"""What a search answers: the three outcomes, its hits and how much of the corpus it could see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tickets.models import Ticket


class Outcome(StrEnum):
    """Found, searched and found nothing, or could not search. An empty list alone never says which."""

    FOUND = "found"
    NOTHING = "nothing"
    UNAVAILABLE = "unavailable"


class Band(StrEnum):
    """How likely a hit describes the same problem, by the bounds of the model's profile."""

    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Hit:
    """One ticket that was found. `similarity` is the cosine, None where the ticket has no vector or none was
    compared.

    `score` orders the hits; `matched` is a subset of "meaning", "identifier", "words"; `passage` is the part
    of the ticket that comes closest to the query.
    """

    ticket: Ticket
    rank: int
    similarity: float | None
    score: float
    band: Band
    matched: tuple[str, ...]
    identifiers: tuple[str, ...]
    passage: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many tickets are searchable by meaning, of how many; and since when the oldest other one waits, in
    seconds.
    """

    indexed: int
    total: int
    oldest_unindexed_seconds: float | None = None

    @property
    def missing(self) -> int:
        return max(self.total - self.indexed, 0)

    @property
    def is_complete(self) -> bool:
        return self.missing == 0


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The answer to one search. `reason` is for people, `reason_code` is stable; both are empty unless
    unavailable.

    An unavailable search may still carry hits that share words or identifiers; it stays unavailable, because
    tickets that only mean the same were not looked for.
    """

    outcome: Outcome
    hits: tuple[Hit, ...]
    coverage: Coverage
    reason: str = ""
    reason_code: str = ""
    log_id: int | None = None
    calibrated: bool = False
    model: str = ""
