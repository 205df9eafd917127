"""The provider `openai`: any server with an OpenAI-compatible `/v1/embeddings` (TEI, vLLM, Ollama,
llama.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from .answers import vectors_of_list
from .errors import SearchOff
from .wire import Wire

if TYPE_CHECKING:
    from . import Vectors

# Marks the stored vectors of this provider, so that a model of the same name elsewhere is not taken for it.
PREFIX = "openai/"


class OpenAIEmbedder:
    """Models that tell documents from queries do so by a prefix of the text, which is a setting.

    The window is unknown here; what a server refuses as too long is halved by the worker.
    """

    window_bytes = 24_000
    batch_texts = 32
    batch_bytes = 200_000
    remote = True
    dilutes = False

    def __init__(
        self, model: str, dimensions: int, wire: Wire, *, document_prefix: str, query_prefix: str
    ) -> None:
        self.name = PREFIX + model
        self.dimensions = dimensions
        self._model = model
        self._wire = wire
        self._document_prefix = document_prefix
        self._query_prefix = query_prefix

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self._document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        return self._embed([self._query_prefix + text])[0]

    def _embed(self, texts: list[str]) -> Vectors:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._model.startswith("text-embedding-3"):
            # The only family of models that takes a wish; other servers answer it with an error.
            body["dimensions"] = self.dimensions
        return vectors_of_list(self._wire.post(body), len(texts), self.dimensions)


def from_settings() -> OpenAIEmbedder:
    if not settings.OPENAI_EMBEDDINGS_BASE_URL:
        raise SearchOff(
            _("Search by meaning is off because OPENAI_EMBEDDINGS_BASE_URL is not set."), "no_key"
        )
    return _embedder(settings.OPENAI_EMBEDDINGS_MODEL, settings.OPENAI_EMBEDDINGS_DIMENSIONS)


def for_model(name: str, dimensions: int) -> OpenAIEmbedder | None:
    if not name.startswith(PREFIX) or not settings.OPENAI_EMBEDDINGS_BASE_URL:
        return None
    return _embedder(name.removeprefix(PREFIX), dimensions)


def _embedder(model: str, dimensions: int) -> OpenAIEmbedder:
    wire = Wire.open(
        f"{settings.OPENAI_EMBEDDINGS_BASE_URL.rstrip('/')}/embeddings",
        settings.OPENAI_EMBEDDINGS_API_KEY,
        settings.EMBED_TIMEOUT_SECONDS,
        key_setting="OPENAI_EMBEDDINGS_API_KEY",
        url_setting="OPENAI_EMBEDDINGS_BASE_URL / OPENAI_EMBEDDINGS_MODEL",
    )
    return OpenAIEmbedder(
        model,
        dimensions,
        wire,
        document_prefix=settings.OPENAI_EMBEDDINGS_DOCUMENT_PREFIX,
        query_prefix=settings.OPENAI_EMBEDDINGS_QUERY_PREFIX,
    )
