"""What of a ticket is embedded: its title and description, nothing else, one text a ticket."""

from __future__ import annotations

from dataclasses import dataclass

from tickets.text import clean_text

from .condense import condensed


@dataclass(frozen=True, slots=True)
class Document:
    """The text that goes to the provider, and how many of the ticket's characters it holds."""

    text: str
    embedded_chars: int
    total_chars: int

    @property
    def is_blank(self) -> bool:
        return not has_words(self.text)


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit of any script: to a model, all texts of emoji alone are twins."""
    return any(char.isalnum() for char in text)


def document(title: str, description: str) -> str:
    """The full text of a ticket, exactly what the ticket's content hash in the database is taken of."""
    return f"{title}\n{description}"


def embeddable(
    title: str,
    description: str,
    window_bytes: int,
    total_chars: int | None = None,
    *,
    dilutes: bool = False,
) -> Document:
    """The text to embed, shortened to the model's window; condensed as well for a model whose vectors
    long texts dilute.

    `total_chars` is the length of the whole text where only its beginning was read.
    """
    full = document(title, description)
    repeated = len(title) + 1 if dilutes and title and description.startswith(title) else 0
    text, kept = prepared(full[repeated:], window_bytes, dilutes=dilutes)
    kept += repeated  # a title that the description begins with anyway is embedded once
    return Document(clean_text(text), kept, len(full) if total_chars is None else total_chars)


def prepared(text: str, window_bytes: int, *, dilutes: bool) -> tuple[str, int]:
    """A ticket's text or a query as the model gets it, and how many characters of the original it holds."""
    if dilutes:
        condensed_text, kept = condensed(shorten(text, window_bytes))
        text = shorten(condensed_text, window_bytes)
        return text, min(kept, len(text))
    text = shorten(text, window_bytes)
    return text, len(text)


def shorten(text: str, window_bytes: int) -> str:
    """The longest beginning of the text that takes at most `window_bytes` in UTF-8, cut between words if it
    can.
    """
    if len(text) * 4 <= window_bytes:
        return text
    raw = text[:window_bytes].encode("utf-8", "surrogatepass")
    if len(raw) <= window_bytes and len(text) <= window_bytes:
        return text
    cut = raw[:window_bytes].decode("utf-8", "ignore")
    space = cut.rfind(" ", len(cut) - 100)
    return cut[:space] if space > 0 else cut


def halved(doc: Document) -> Document:
    """The first half of a text that the provider found too long."""
    text = doc.text[: len(doc.text) // 2]
    return Document(text, len(text), doc.total_chars)
