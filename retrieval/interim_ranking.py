"""Order by cosine, until the ranking is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    ticket_id: int
    cosine: float | None
    identifiers: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class RankedHit:
    ticket_id: int
    score: float
    cosine: float | None
    matched: tuple[str, ...]
    identifiers: tuple[str, ...]


def words_help(query: str) -> bool:
    return False


def rank(
    candidates: Sequence[Candidate], *, query: str, frequencies: Mapping[str, int], total: int
) -> list[RankedHit]:
    hits = [
        RankedHit(
            one.ticket_id,
            min(1.0, (one.cosine or 0.0) + 0.3 * bool(one.identifiers)),
            one.cosine,
            tuple(
                kind
                for kind, is_so in (
                    ("meaning", one.cosine is not None),
                    ("identifier", one.identifiers),
                    ("words", one.text),
                )
                if is_so
            ),
            one.identifiers,
        )
        for one in candidates
    ]
    return sorted(hits, key=lambda hit: -hit.score)
