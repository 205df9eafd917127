"""Where two texts differ, word by word, for people who compare them side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_CHARS = 3_000
# Texts that have less in common are written differently throughout: marking nearly everything marks nothing.
ALIKE = 0.3
_TOKEN = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")  # a word with the space behind it, which is not compared


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
    matcher = SequenceMatcher(None, _comparable(here), _comparable(there))
    if matcher.ratio() < ALIKE:
        return Comparison([Piece(left, False)], [Piece(right, False)], alike=False, cut=cut)
    codes = matcher.get_opcodes()
    return Comparison(
        _pieces(here, [(tag != "equal", start, end) for tag, start, end, _from, _to in codes]),
        _pieces(there, [(tag != "equal", start, end) for tag, _from, _to, start, end in codes]),
        alike=True,
        cut=cut,
    )


def _comparable(tokens: list[str]) -> list[str]:
    return [token.strip().casefold() for token in tokens]


def _pieces(tokens: list[str], runs: list[tuple[bool, int, int]]) -> list[Piece]:
    pieces = (Piece("".join(tokens[start:end]), differs) for differs, start, end in runs if end > start)
    return [part for piece in pieces for part in _without_marked_space(piece)]


def _without_marked_space(piece: Piece) -> list[Piece]:
    """The space around marked words is not marked with them."""
    words = piece.text.strip()
    if not piece.differs or words == piece.text:
        return [piece]
    before, _words, after = piece.text.partition(words) if words else (piece.text, "", "")
    parts = [Piece(before, False), Piece(words, True), Piece(after, False)]
    return [part for part in parts if part.text]
