"""Marks in a found ticket what it shares with the query: identifiers and words, as whole tokens."""

import re
from collections.abc import Iterable

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

# Shorter words (der, is, on) are everywhere: marking them hides what matters. Tokens with a digit always count.
SHORTEST_WORD = 4
MOST_TERMS = 60
WORD = re.compile(r"[^\W_]+(?:[-_.:/][^\W_]+)*", re.UNICODE)


def terms_of(query: str, identifiers: Iterable[str] = ()) -> list[str]:
    """What to look for, longest first, so that a code wins over the words inside it."""
    words = (word for word in WORD.findall(query) if len(word) >= SHORTEST_WORD or _has_digit(word))
    terms = {term.casefold() for term in [*identifiers, *words] if term.strip()}
    return sorted(terms, key=lambda term: (-len(term), term))[:MOST_TERMS]


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def highlighted(text: str, terms: list[str]) -> SafeString:
    """`text` as HTML, everything escaped, with each occurrence of a term in `<mark>`."""
    if not terms:
        return conditional_escape(str(text))
    pattern = re.compile(r"(?<!\w)(" + "|".join(re.escape(term) for term in terms) + r")(?!\w)", re.IGNORECASE)
    pieces = pattern.split(str(text))
    marked = (
        f"<mark>{conditional_escape(piece)}</mark>" if odd % 2 else conditional_escape(piece)
        for odd, piece in enumerate(pieces)
    )
    return mark_safe("".join(marked))  # every piece is escaped above
