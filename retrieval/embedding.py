"""Embedding many texts against a provider that may fail: what is one text's fault is isolated, what is the
provider's stops everything."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from .documents import Document, halved
from .embedders import Embedder, EmbeddingError

logger = logging.getLogger(__name__)

CANARY = "ticket"


@dataclass(slots=True)
class Embedded:
    """What became of some texts, by their place, and how long it took. `outage` is set if the provider
    failed; what is in neither of the others was then not embedded."""

    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    documents: dict[int, Document] = field(default_factory=dict)
    failures: dict[int, EmbeddingError] = field(default_factory=dict)
    outage: EmbeddingError | None = None
    seconds: float = 0.0


class Outage(Exception):
    """The provider is at fault, not a text."""

    def __init__(self, cause: EmbeddingError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def embed(embedder: Embedder, documents: Sequence[Document]) -> Embedded:
    """Embeds all texts, halving the lot around those that the provider cannot take. Never raises."""
    result = Embedded()
    began_at = monotonic()
    try:
        _embed(embedder, list(enumerate(documents)), result, suspicious=True)
    except Outage as outage:
        result.outage = outage.cause
    result.seconds = monotonic() - began_at
    return result


def _embed(
    embedder: Embedder, numbered: list[tuple[int, Document]], result: Embedded, *, suspicious: bool
) -> None:
    try:
        vectors = _call(embedder, [document.text for _, document in numbered])
    except EmbeddingError as error:
        if error.provider_wide:
            raise Outage(error) from error
        alone = len(numbered) == 1
        if not error.too_long and (suspicious or alone):
            _prove_alive(embedder, error)
        if not alone:
            for half in _halves(numbered):
                _embed(embedder, half, result, suspicious=False)
        elif error.too_long and len(numbered[0][1].text) > 1:
            number, document = numbered[0]
            _embed(embedder, [(number, halved(document))], result, suspicious=False)
        else:
            result.failures[numbered[0][0]] = error
        return
    for (number, document), vector in zip(numbered, vectors, strict=True):
        result.vectors[number] = vector
        result.documents[number] = document


def _call(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    try:
        return embedder.embed_documents(texts)
    except EmbeddingError:
        raise
    except Exception as error:
        logger.exception("the provider %s raised", embedder.name)
        raise EmbeddingError(
            _("The embedding provider failed in an unforeseen way."), code="internal"
        ) from error


def _prove_alive(embedder: Embedder, error: EmbeddingError) -> None:
    """Raises Outage unless the provider still takes a text that is beyond doubt."""
    try:
        _call(embedder, [CANARY])
    except EmbeddingError as second:
        # The first error says more, unless the second one is sure to concern the provider.
        raise Outage(second if second.provider_wide else error) from second


def _halves(numbered: list[tuple[int, Document]]) -> Iterator[list[tuple[int, Document]]]:
    middle = len(numbered) // 2
    yield numbered[:middle]
    yield numbered[middle:]


def batches(documents: Sequence[Document], texts: int, size: int) -> Iterator[list[int]]:
    """The places of the documents, in lots of at most `texts` texts and `size` bytes (a larger text goes
    alone).
    """
    lot: list[int] = []
    filled = 0
    for number, document in enumerate(documents):
        length = len(document.text.encode())
        if lot and (len(lot) >= texts or filled + length > size):
            yield lot
            lot, filled = [], 0
        lot.append(number)
        filled += length
    if lot:
        yield lot
