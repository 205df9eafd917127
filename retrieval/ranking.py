"""The order of a search's candidates: meaning first, shared identifiers always, words where they help.

The score is a convex sum of parts between 0 and 1, so it is one itself, and comparable between candidates of
one search. It orders; it does not decide. Whether a hit is shown and how it is called is judged by its cosine
(`is_worth_reading`, `is_likely`). Why each weight is what it is, and what was measured:
docs/retrieval-measurements.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

from .words import Words, language_of, similarities, words_of

# Below that many different words a text is too short for word statistics, and its meaning alone is better.
LONG_QUERY_WORDS = 20
# Of a ticket that waits for its vector: words in common below that are chance.
ENOUGH_WORDS = 0.1


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts beside meaning, which counts 1.

    `identifier`: an error code or asset tag that few tickets have outweighs any difference in cosine that is
    usual between neighbours (0.05 to 0.2), but not the distance to a ticket about something else.
    `words`: only for long queries, and only among tickets of the query's language.
    """

    identifier: float = 0.2
    words: float = 0.5


DEFAULT = Weights()


# What may speak for a ticket.
PARTS = ("meaning", "identifier", "words")


class Candidate(NamedTuple):
    """A ticket that a search may show. `identifiers` are those it shares with the query; `text` is needed
    where the cosine is None, and of every candidate when `words_help(query)`."""

    ticket_id: int
    cosine: float | None
    identifiers: tuple[str, ...] = ()
    text: str = ""


class RankedHit(NamedTuple):
    """A candidate in its place. `matched` names those of PARTS that speak for it."""

    ticket_id: int
    score: float
    cosine: float | None
    matched: tuple[str, ...]
    identifiers: tuple[str, ...]
    words: float = 0.0


def words_help(query: str) -> bool:
    """Whether the query is long enough, and in a known language, to compare words as well."""
    words = words_of(query)
    return len(words) >= LONG_QUERY_WORDS and language_of(words) != ""


def rank(
    candidates: Sequence[Candidate],
    *,
    query: str,
    frequencies: Mapping[str, int],
    total: int,
    weights: Weights = DEFAULT,
) -> list[RankedHit]:
    """All candidates, best first, ties by the older ticket.

    `frequencies`: in how many of `total` tickets each shared identifier stands.
    """
    rarities = {identifier: rarity(count, total) for identifier, count in frequencies.items()}
    shared = _identifier_parts(candidates, rarities)
    words = _WordPart.of(candidates, query)
    weigh_identifiers = weights.identifier * max(rarities.values(), default=0.0)
    weigh_words = weights.words if words.applies else 0.0
    whole = 1 + weigh_identifiers + weigh_words
    hits = [
        _hit(
            one,
            (_meaning(one, word) + weigh_identifiers * identifier + weigh_words * expected) / whole,
            identifier,
            word,
        )
        for one, identifier, word, expected in zip(
            candidates, shared, words.found, words.expected, strict=True
        )
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.ticket_id))


def rarity(count: int, total: int) -> float:
    """1 for an identifier of one ticket only, 0 for one that every ticket has."""
    if total <= 1 or count <= 1:
        return 1.0
    return max(0.0, 1 - math.log(count) / math.log(total))


def is_worth_reading(hit: RankedHit, floor: float | None) -> bool:
    """Whether a hit is like the query at all: by its cosine, a shared identifier, or words while it waits."""
    if floor is None or hit.identifiers:
        return True
    return hit.words >= ENOUGH_WORDS if hit.cosine is None else hit.cosine >= floor


def is_likely(hit: RankedHit, floor: float | None, likely: float | None) -> bool:
    """Whether a hit stands out: by its cosine, or by a shared identifier if its meaning is not far off."""
    if likely is None or hit.cosine is None:
        return False
    return hit.cosine >= likely or (bool(hit.identifiers) and floor is not None and hit.cosine >= floor)


def _identifier_parts(candidates: Sequence[Candidate], rarities: Mapping[str, float]) -> list[float]:
    """The share of the query's known identifiers that each candidate has, weighed by rarity."""
    whole = sum(rarities.values())
    if not whole:
        return [0.0] * len(candidates)
    return [
        min(1.0, sum(rarities.get(identifier, 0.0) for identifier in set(one.identifiers)) / whole)
        for one in candidates
    ]


def _meaning(one: Candidate, words: float) -> float:
    """The cosine; words stand in for it while a ticket waits for its vector."""
    return words if one.cosine is None else min(1.0, max(0.0, one.cosine))


def _hit(one: Candidate, score: float, identifier: float, words: float) -> RankedHit:
    matched = tuple(compress(PARTS, (one.cosine is not None, identifier > 0, words > 0)))
    return RankedHit(one.ticket_id, min(1.0, score), one.cosine, matched, one.identifiers, words)


@dataclass(frozen=True, slots=True)
class _WordPart:
    """What the words of each candidate say: `found` as compared, `expected` as it enters the score.

    A candidate in another language cannot share words. It gets the word score that candidates of the query's
    language with its cosine have on average, so that it neither gains nor loses.
    """

    applies: bool
    found: list[float]
    expected: list[float]

    @classmethod
    def of(cls, candidates: Sequence[Candidate], query: str) -> _WordPart:
        if not any(one.text for one in candidates):
            nothing = [0.0] * len(candidates)
            return cls(False, nothing, nothing)
        words = words_of(query)
        texts = [words_of(one.text) for one in candidates]
        found = similarities(words, texts)
        language = language_of(words)
        if len(words) < LONG_QUERY_WORDS or not language:
            return cls(False, found, [0.0] * len(candidates))
        return cls(True, found, _expected(candidates, texts, found, language))


def _expected(
    candidates: Sequence[Candidate], texts: Sequence[Words], found: Sequence[float], language: str
) -> list[float]:
    comparable = [bool(text) and language_of(text) == language for text in texts]
    line = _line(
        [
            (one.cosine, word)
            for one, word, is_so in zip(candidates, found, comparable, strict=True)
            if is_so and one.cosine is not None
        ]
    )
    return [
        word if is_so or one.cosine is None else min(1.0, max(0.0, line[0] + line[1] * one.cosine))
        for one, word, is_so in zip(candidates, found, comparable, strict=True)
    ]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope of the least-squares line, flat where there are too few points for a slope."""
    if not points:
        return 0.0, 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if len(points) < 5 or spread < 1e-9:
        return mean_y, 0.0
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope
