"""Marks in a found ticket what it shares with the query: identifiers and words, as whole tokens."""

import re
from collections.abc import Iterable

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

# Shorter words (der, is, on) are everywhere: marking them hides what matters. Tokens with a digit always
# count.
SHORTEST_WORD = 4
MOST_TERMS = 60
COMMON = frozenset(
    [
        "aber",
        "alle",
        "also",
        "auch",
        "beim",
        "dann",
        "dass",
        "dein",
        "dies",
        "diese",
        "diesem",
        "diesen",
        "dieser",
        "eine",
        "einem",
        "einen",
        "einer",
        "eines",
        "etwas",
        "haben",
        "habe",
        "hallo",
        "ihre",
        "immer",
        "jetzt",
        "kann",
        "keine",
        "keinen",
        "könnte",
        "mehr",
        "mein",
        "meine",
        "meinem",
        "meinen",
        "meiner",
        "mich",
        "mir",
        "muss",
        "nach",
        "nicht",
        "noch",
        "nur",
        "oder",
        "ohne",
        "schon",
        "sehr",
        "seit",
        "sich",
        "sind",
        "unser",
        "unsere",
        "unter",
        "über",
        "wenn",
        "werden",
        "wieder",
        "wird",
        "wurde",
        "zum",
        "zur",
        "about",
        "after",
        "again",
        "also",
        "been",
        "before",
        "cannot",
        "could",
        "does",
        "doesn",
        "dont",
        "down",
        "each",
        "even",
        "every",
        "from",
        "have",
        "hello",
        "help",
        "here",
        "into",
        "just",
        "more",
        "most",
        "much",
        "need",
        "only",
        "other",
        "over",
        "please",
        "same",
        "should",
        "since",
        "some",
        "still",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "very",
        "want",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
        "without",
        "would",
        "your",
    ]
)
WORD = re.compile(r"[^\W_]+(?:[-_.:/][^\W_]+)*", re.UNICODE)


def terms_of(query: str, identifiers: Iterable[str] = ()) -> list[str]:
    """What to look for, longest first, so that a code wins over the words inside it."""
    words = (word for word in WORD.findall(query) if _says_something(word))
    terms = {term.casefold() for term in [*identifiers, *words] if term.strip()}
    return sorted(terms, key=lambda term: (-len(term), term))[:MOST_TERMS]


def _says_something(word: str) -> bool:
    if any(character.isdigit() for character in word):
        return True
    return len(word) >= SHORTEST_WORD and word.casefold() not in COMMON


def highlighted(text: str, terms: list[str]) -> SafeString:
    """`text` as HTML, everything escaped, with each occurrence of a term in `<mark>`."""
    if not terms:
        return conditional_escape(str(text))
    pattern = re.compile(
        r"(?<!\w)(" + "|".join(re.escape(term) for term in terms) + r")(?!\w)", re.IGNORECASE
    )
    pieces = pattern.split(str(text))
    marked = (
        f"<mark>{conditional_escape(piece)}</mark>" if odd % 2 else conditional_escape(piece)
        for odd, piece in enumerate(pieces)
    )
    return mark_safe("".join(marked))  # every piece is escaped above
