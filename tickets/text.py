"""What text may look like before it is stored, and inside a sentence. Every path into the database passes
through here."""

import re
import unicodedata

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INNER_QUOTES = str.maketrans({"„": "‚", "“": "‘", "”": "’", '"': "'"})
_LINE_END = re.compile("\r\n?")


def clean_text(text: str) -> str:
    """Make `text` storable and keep everything a person can read.

    NUL is removed (PostgreSQL refuses it), lone surrogates become U+FFFD (they have no UTF-8 form), and line
    ends become `\\n`, so that a form that sends `\\r\\n` does not look like an edit.
    """
    return _LINE_END.sub("\n", _LONE_SURROGATE.sub("\ufffd", text.replace("\0", "")))


def clean_title(title: str) -> str:
    """One line: cleaned, without space around it, runs of white space as one space."""
    return " ".join(clean_text(title).split())


def is_blank(text: str) -> bool:
    """Whether nothing in `text` can be seen: only white space and invisible characters."""
    return all(unicodedata.category(char)[0] in "ZC" for char in text)


def within_quotes(text: str) -> str:
    """`text` for a place between quotation marks: its own become single ones, English and German alike."""
    return text.translate(_INNER_QUOTES)
