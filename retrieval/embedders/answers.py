"""Checks of what a provider answered. Nothing is stored or compared that has not passed here."""

from __future__ import annotations

from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from .errors import EmbeddingError

SMALLEST_NORM = 1e-6


def unit_vectors(raw: Any, count: int, dimensions: int) -> NDArray[np.float32]:
    """`raw` as (count, dimensions) float32 of unit length; raises EmbeddingError for anything else."""
    try:
        vectors = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise bad_answer(_("vectors that are not lists of numbers of one length")) from error
    if vectors.shape != (count, dimensions):
        expected, got = f"{count} × {dimensions}", " × ".join(map(str, vectors.shape))
        raise bad_answer(_("vectors of shape {got} instead of {expected}").format(got=got, expected=expected))
    if not np.isfinite(vectors).all():
        raise bad_answer(_("a vector with values that are not finite"))
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if (norms < SMALLEST_NORM).any():
        raise bad_answer(_("a vector of length zero"))
    return (vectors / norms).astype(np.float32)


def vectors_of_list(payload: Any, count: int, dimensions: int) -> NDArray[np.float32]:
    """The vectors of `{"data": [{"index", "embedding"}, …]}` in the order of `index`, which may come in any
    order.
    """
    data = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise bad_answer(_("JSON without a list of vectors"))
    if len(data) != count:
        raise bad_answer(_("{got} vectors for {count} texts").format(got=len(data), count=count))
    by_index = {item.get("index"): item.get("embedding") for item in data if type(item.get("index")) is int}
    if sorted(by_index) != list(range(count)):
        raise bad_answer(_("vectors whose numbering has gaps or repeats"))
    return unit_vectors([by_index[i] for i in range(count)], count, dimensions)


def bad_answer(what: str) -> EmbeddingError:
    return EmbeddingError(
        _("The embedding provider answered with {what}.").format(what=what), code="provider_bad_answer"
    )
