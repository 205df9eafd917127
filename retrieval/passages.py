"""The passage of a ticket that comes closest to what was asked, for people to judge a hit by.

It is chosen by shared identifiers and words. Between languages there are none, and another call of the model
for every sentence would cost more than the search: then it is the beginning of what the person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .condense import begins_with_greeting, is_machine_output
from .words import ALL_FUNCTION_WORDS, words_of

PASSAGE_CHARS = 240
READ_CHARS = 10_000
# A sentence, or a line: reports are written in both.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？]+(?=\s|$)|(?=\n)|$)")
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
    places = [(match.start(), match.end()) for match in _SENTENCE.finditer(body) if match[0].strip()]
    if not places:
        return title[:limit]
    asked = _stems(query)
    scores = [_score(body[start:end], asked, identifiers) for start, end in places]
    best = max(range(len(places)), key=lambda number: (scores[number], -number))
    if not scores[best]:
        best = _first_worth_reading([body[start:end] for start, end in places])
    return _cut(body[places[best][0] :], limit)


def _score(sentence: str, asked: set[str], identifiers: Collection[str]) -> int:
    joined = sentence.lower().translate(_JOINTS) if identifiers else ""
    named = sum(1 for identifier in identifiers if identifier in joined)
    return IDENTIFIER_COUNTS * named + len(_stems(sentence) & asked)


def _stems(text: str) -> set[str]:
    """The beginnings of the content words, so that "Drucker" meets "Druckers", and "print" "printing"."""
    return {word[:SHORTEST_STEM] for word in words_of(text) if word not in ALL_FUNCTION_WORDS}


def _first_worth_reading(sentences: list[str]) -> int:
    """The first sentence that is neither a greeting nor the output of a machine."""
    readable: Iterator[int] = (
        number
        for number, sentence in enumerate(sentences)
        if not begins_with_greeting(sentence) and not is_machine_output(sentence.strip())
    )
    return next(readable, 0)


def _cut(text: str, limit: int) -> str:
    text = text.strip()
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(None, 1)[0] + "…"
