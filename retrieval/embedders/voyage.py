"""The provider `voyage`: Voyage AI's embeddings; settings send MongoDB's keys to MongoDB's address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext as _

from .answers import vectors_of_list
from .errors import SearchOff
from .wire import Wire

if TYPE_CHECKING:
    from . import Vectors

WINDOW_TOKENS = 32_000
BATCH_TOKENS = 320_000
BATCH_TOKENS_LITE = 1_000_000
BATCH_TOKENS_LARGE = 120_000
# Tokens are only known to the provider. English and German have about four bytes to a token, Chinese three;
# log lines have fewer, so limits keep a margin, and what is refused as too long all the same is halved by the
# worker.
BYTES_PER_TOKEN = 3
MARGIN = 0.9


class VoyageEmbedder:
    """Documents and queries are different calls; a text over the window is an error, not cut in silence."""

    window_bytes = int(WINDOW_TOKENS * BYTES_PER_TOKEN * MARGIN)
    batch_texts = 1_000
    remote = True
    dilutes = False

    def __init__(self, model: str, dimensions: int, *, key: str, base_url: str, seconds: float) -> None:
        self.name = model
        self.dimensions = dimensions
        self.batch_bytes = int(batch_tokens(model) * BYTES_PER_TOKEN * MARGIN)
        url = f"{base_url.rstrip('/')}/embeddings"
        self._wire = Wire.open(
            url, key, seconds, key_setting="VOYAGE_API_KEY", url_setting="VOYAGE_BASE_URL / VOYAGE_MODEL"
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, "document")

    def embed_query(self, text: str) -> Vectors:
        return self._embed([text], "query")[0]

    def _embed(self, texts: Sequence[str], input_type: str) -> Vectors:
        answer = self._wire.post(
            {
                "input": list(texts),
                "model": self.name,
                "input_type": input_type,
                "output_dimension": self.dimensions,
                "truncation": False,
            }
        )
        return vectors_of_list(answer, len(texts), self.dimensions)


def batch_tokens(model: str) -> int:
    """How many tokens one request may hold."""
    if "lite" in model:
        return BATCH_TOKENS_LITE
    return BATCH_TOKENS_LARGE if "large" in model else BATCH_TOKENS


def from_settings() -> VoyageEmbedder:
    if settings.VOYAGE_API_KEY == "placeholder":
        raise SearchOff(_("Search by meaning is off because VOYAGE_API_KEY is not set."), "no_key")
    return _embedder(settings.VOYAGE_MODEL, settings.VOYAGE_DIMENSIONS)


def for_model(name: str, dimensions: int) -> VoyageEmbedder | None:
    if not name.startswith("voyage-") or settings.VOYAGE_API_KEY == "placeholder":
        return None
    return _embedder(name, dimensions)


def _embedder(model: str, dimensions: int) -> VoyageEmbedder:
    return VoyageEmbedder(
        model,
        dimensions,
        key=settings.VOYAGE_API_KEY,
        base_url=settings.VOYAGE_BASE_URL,
        seconds=settings.EMBED_TIMEOUT_SECONDS,
    )
