"""What of a long text a small encoder should read: what people wrote, the title foremost, no machine output.

An encoder that makes one vector of everything it reads is diluted by logs, stack traces and version tables:
with ten lines of them a ticket is no longer found by its own problem. So from 400 characters on, lines that
are mostly not words are left out, and the title is repeated until it makes about a quarter of the text.
Shorter texts stay as they are. Measured on both: docs/retrieval-measurements.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Raise it with every change of what is kept of a text. It is part of the name of the stored vectors, so the
# worker then embeds every ticket anew, and searches go on with the old vectors until it is done.
VERSION = 1

LONG_FROM = 400
# One line of title for so many characters of text, in title lengths: about a quarter of the whole.
TITLE_SHARE = 0.35
LONGEST_TITLE = 200
SHORTEST_TITLE = 10
# Without a line of its own, the beginning of a text serves as its title.
BEGINNING = 80
SHORTEST_MACHINE_PIECE = 20
LONGEST_LINE = 200
WORDS_AT_ONCE = 12
ENOUGH_WORDS = 0.5
ENOUGH_WORDS_AFTER_A_STAMP = 0.8

_PLAIN_WORD = re.compile(r"[\"'(\[{*_<>`~#-]*[^\W\d_]+(?:['’\-/][^\W\d_]+)*[\"')\]}*_<>`~.,:;!?…-]*")
# What lines of logs and traces begin with: dates, times, frames, addresses.
_STAMP = re.compile(
    r"\W*(?:\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{2,4}|\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d:\d\d"
    r"|at [\w$.<>\[\]/]+[ (]|File \"|0x[0-9a-f]{4}|#\d+ |\[ ?\d)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"\W*(?:hallo|hi|hey|hello|moin|servus|guten|gruezi|grüezi|liebe[rs]?|sehr geehrte|dear"
    r"|good (?:morning|day|afternoon|evening)|bonjour|bonsoir|salut|chers?|madame|monsieur)\b",
    re.IGNORECASE,
)


def condensed(text: str) -> tuple[str, int]:
    """The text to embed, and how many characters of the given one it holds (repetitions not counted)."""
    if len(text) < LONG_FROM:
        return text, len(text)
    kept = "\n".join(_written_lines(text))
    if not kept.strip():
        return text, len(text)
    return (kept if len(kept) < LONG_FROM else _title_foremost(kept)), len(kept)


def _title_foremost(text: str) -> str:
    title = title_of(text)
    if not title:
        return text
    return f"{title}\n" * max(1, round(TITLE_SHARE * len(text) / max(20, len(title)))) + text


def title_of(text: str) -> str:
    """The first line, or the beginning of a text in one line; "" where it begins with a greeting."""
    first = text.split("\n", 1)[0].strip()
    if begins_with_greeting(first) or len(first) < SHORTEST_TITLE:
        return ""
    if len(first) <= LONGEST_TITLE and len(first) < len(text):
        return first
    return first[:BEGINNING].rsplit(" ", 1)[0]


def begins_with_greeting(text: str) -> bool:
    return _GREETING.match(text) is not None


def _written_lines(text: str) -> Iterator[str]:
    """The lines that hold words; the first one, the title, whatever it holds."""
    title, *lines = text.split("\n")
    yield title if len(title) <= LONGEST_TITLE else " ".join(_written_pieces(title, keep_first=True))
    for line in lines:
        written = " ".join(_written_pieces(line))
        if written or not line:
            yield written


def _written_pieces(line: str, keep_first: bool = False) -> Iterator[str]:
    for number, piece in enumerate(_pieces(line)):
        if (keep_first and number == 0) or not is_machine_output(piece):
            yield piece


def _pieces(line: str) -> Iterator[str]:
    """A line of ordinary length as it is; a longer one, as of a text without line breaks, word by word."""
    if len(line) <= LONGEST_LINE:
        yield line
        return
    words = line.split(" ")
    for start in range(0, len(words), WORDS_AT_ONCE):
        yield " ".join(words[start : start + WORDS_AT_ONCE])


def is_machine_output(piece: str) -> bool:
    """Whether fewer than half of its words are words; after a time stamp or the like, fewer than 80 %."""
    if len(piece) < SHORTEST_MACHINE_PIECE:
        return False
    words = piece.split()
    if len(words) == 1:
        # One long run of letters is a sentence in Chinese or Japanese, and a path or a token elsewhere.
        return len(piece) >= 60 and not piece.isalpha() and piece.isascii()
    share = sum(1 for word in words if _PLAIN_WORD.fullmatch(word)) / max(1, len(words))
    return share < (ENOUGH_WORDS_AFTER_A_STAMP if _STAMP.match(piece) else ENOUGH_WORDS)
