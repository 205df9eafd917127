"""Where two texts differ, word by word, for people who compare them side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_CHARS = 3_000
# Texts that have less in common are written differently throughout: marking nearly everything marks nothing.
ALIKE = 0.3
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stands in both (`differs` is False) or only here."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both texts in pieces; without marks where `alike` is False. `cut`: only their beginnings are shown."""

    left: list[Piece]
    right: list[Piece]
    alike: bool
    cut: bool


def compare_texts(left: str, right: str) -> Comparison:
    cut = max(len(left), len(right)) > MOST_CHARS
    left, right = left[:MOST_CHARS], right[:MOST_CHARS]
    here, there = _TOKEN.findall(left), _TOKEN.findall(right)
    matcher = SequenceMatcher(
        None, [token.casefold() for token in here], [token.casefold() for token in there], autojunk=False
    )
    if matcher.ratio() < ALIKE:
        return Comparison([Piece(left, False)], [Piece(right, False)], alike=False, cut=cut)
    codes = matcher.get_opcodes()
    return Comparison(
        _pieces(here, [(tag != "equal", start, end) for tag, start, end, _from, _to in codes]),
        _pieces(there, [(tag != "equal", start, end) for tag, _from, _to, start, end in codes]),
        alike=True,
        cut=cut,
    )


def _pieces(tokens: list[str], runs: list[tuple[bool, int, int]]) -> list[Piece]:
    return [Piece("".join(tokens[start:end]), differs) for differs, start, end in runs if end > start]
