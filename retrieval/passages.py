"""The passage of a ticket that comes closest to what was asked, for people to judge a hit by.

It is chosen by shared identifiers and words. Between languages there are none, and another call of the model
for every sentence would cost more than the search: then it is the beginning of what the person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from .condense import begins_with_greeting, is_machine_output
from .words import content_words

PASSAGE_CHARS = 240
READ_CHARS = 10_000
# A sentence, or a line: reports are written in both. A stop within a word (2.14, nas.lan) ends none.
_SENTENCE = re.compile(r"(?:[^\n.!?。！？]++|[.!?。！？]++(?!\s|$))++[.!?。！？]*+")
_JOINTS = str.maketrans("", "", "-_:")
# A code decides where a word only hints.
IDENTIFIER_COUNTS = 5
SHORTEST_STEM = 5


def best_passage(
    query: str,
    title: str,
    description: str,
    identifiers: Collection[str] = (),
    limit: int = PASSAGE_CHARS,
) -> str:
    """At most `limit` characters of the description, as they stand there; the title where there is none.

    `identifiers`: what the ticket shares with the query, in canonical form (nb10234).
    """
    body = description[:READ_CHARS]
    best = _most_telling(body, _asked(query), identifiers) or _first_worth_reading(body)
    return _cut(body[best.start() :], limit) if best else title[:limit]


def _sentences(body: str) -> Iterator[re.Match[str]]:
    return (match for match in _SENTENCE.finditer(body) if not match[0].isspace())


def _most_telling(body: str, asked: frozenset[str], identifiers: Collection[str]) -> re.Match[str] | None:
    """The first of the sentences that share most with the query; None where none shares anything."""
    lowered = body.lower()
    # Between languages nothing is shared as a rule, which is seen at once.
    if not identifiers and not any(stem in lowered for stem in asked):
        return None
    sentences = list(_sentences(body))
    scores = [_score(sentence[0], asked, identifiers) for sentence in sentences]
    most = max(scores, default=0)
    return sentences[scores.index(most)] if most else None


def _score(sentence: str, asked: frozenset[str], identifiers: Collection[str]) -> int:
    joined = sentence.lower().translate(_JOINTS) if identifiers else ""
    named = sum(1 for identifier in identifiers if identifier in joined)
    return IDENTIFIER_COUNTS * named + len(_stems(sentence) & asked)


@lru_cache(maxsize=4)
def _asked(query: str) -> frozenset[str]:
    """Worked out once for all hits of a search."""
    return frozenset(_stems(query))


def _stems(text: str) -> set[str]:
    """The beginnings of the content words, so that "Drucker" meets "Druckers", and "print" "printing"."""
    return {word[:SHORTEST_STEM] for word in content_words(text)}


def _first_worth_reading(body: str) -> re.Match[str] | None:
    """The first sentence that is neither a greeting nor the output of a machine, else the first."""
    first = None
    for sentence in _sentences(body):
        if not begins_with_greeting(sentence[0]) and not is_machine_output(sentence[0].strip()):
            return sentence
        first = first or sentence
    return first


def _cut(text: str, limit: int) -> str:
    text = text.strip()
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(None, 1)[0] + "…"
