"""The embedding providers. Each is one module that offers `from_settings()` and `for_model(name,
dimensions)`.

To add one: write the module, name it in `PROVIDERS`, and give it its settings.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from threading import Thread
from types import ModuleType
from typing import Protocol

import numpy as np
from django.conf import settings
from django.core.signals import setting_changed
from numpy.typing import NDArray

from .errors import EmbeddingError, SearchOff

__all__ = [
    "Embedder",
    "EmbeddingError",
    "SearchOff",
    "Vectors",
    "embedder_for",
    "get_embedder",
    "model_key",
    "warm_up",
]

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

PROVIDERS = {
    "voyage": "retrieval.embedders.voyage",
    "local": "retrieval.embedders.local",
    "openai": "retrieval.embedders.openai",
    "off": "retrieval.embedders.off",
}


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to use from several threads at once.

    `window_bytes`: how much of one text (UTF-8) the model takes; `batch_texts`, `batch_bytes`: what one call
    takes; `remote`: calls wait for a network, so several at once are faster; `dilutes`: long texts blur its
    vectors, so they are condensed first.
    """

    name: str
    dimensions: int
    window_bytes: int
    batch_texts: int
    batch_bytes: int
    remote: bool
    dilutes: bool

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answers (n, dimensions) in the order of the texts; raises EmbeddingError."""

    def embed_query(self, text: str) -> Vectors:
        """Answers (dimensions,); raises EmbeddingError."""


def model_key(embedder: Embedder) -> str:
    """The name under which the vectors are stored, e.g. `voyage-4:1024`."""
    return f"{embedder.name}:{embedder.dimensions}"


@lru_cache(maxsize=1)
def get_embedder() -> Embedder:
    """The configured provider, one per process. Raises SearchOff when there is none."""
    embedder: Embedder = _module(settings.EMBEDDING_PROVIDER).from_settings()
    return embedder


@lru_cache(maxsize=8)
def embedder_for(key: str) -> Embedder | None:
    """A provider that can embed queries for vectors stored under `key`, None when no configured one can."""
    name, _, dimensions = key.rpartition(":")
    if not dimensions.isdigit():
        return None
    answers = (_module(provider).for_model(name, int(dimensions)) for provider in PROVIDERS)
    return next((embedder for embedder in answers if embedder is not None), None)


def warm_up() -> Thread:
    """Loads a model on this machine in the background, so that no first search waits for it."""
    thread = Thread(target=_warm_up, name="warm-up", daemon=True)
    thread.start()
    return thread


def _warm_up() -> None:
    try:
        embedder = get_embedder()
        if not embedder.remote:
            embedder.embed_query("warm-up")
    except SearchOff:
        pass  # a choice, and every search says so
    except EmbeddingError as error:
        logger.warning("%s", error)


def _module(provider: str) -> ModuleType:
    return import_module(PROVIDERS[provider])


def _forget(*, setting: str, **_: object) -> None:
    if setting.startswith(("EMBED", "VOYAGE", "OPENAI")):
        get_embedder.cache_clear()
        embedder_for.cache_clear()


setting_changed.connect(_forget)
