"""Where "nothing like it" ends and "stands out" begins, for one model: from the tickets, without labels.

The measure is the alert rate: the share of existing tickets that would have raised a hint, had their title
been searched for among the others. It says how often people would be bothered, whatever the scale of the
model's cosines. It does not say how often they would be bothered rightly: that takes the verdicts of people.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from django.utils import timezone
from numpy.typing import NDArray

from .embedders import Embedder, EmbeddingError, model_key
from .index import profile_of
from .models import IndexState, SearchLog, SearchProfile, Verdict

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

# Nine of ten tickets have something worth reading beside them. Measured on four sets, the floor that follows
# keeps 95 to 99 % of the true pairs and nearly nothing that has to do with something else altogether.
FLOOR_ALERT_RATE = 0.9
# Three tickets in ten resemble another so much that somebody should look before a new one is created: 42 to
# 91 % of the true pairs of five sets, and up to a third of the near misses.
LIKELY_ALERT_RATE = 0.3
# Compared among so many at most: in a larger corpus the nearest neighbour of everything comes closer, and a
# floor that climbs with it would hide true matches in other languages.
SAMPLE = 300
FEWEST_TICKETS = 20
FEWEST_VERDICTS = 30

SAMPLE_SQL = """
    SELECT t.title, e.embedding::real[]
    FROM (
        SELECT ticket_id, embedding FROM retrieval_ticketembedding
        WHERE model = %s AND embedding IS NOT NULL ORDER BY hashint8(ticket_id) LIMIT %s
    ) AS e JOIN tickets_ticket t ON t.id = e.ticket_id
    ORDER BY t.id"""


class TooFewTickets(Exception):
    """There is too little to calibrate by; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on the cosine: below `floor` a hit is not shown, from `likely` on it stands out."""

    floor: float
    likely: float


def bounds(titles: Vectors, documents: Vectors) -> Bounds:
    """The bounds that give the wanted alert rates, from (n, d) unit vectors of the same n tickets' titles and
    whole texts.
    """
    similarities = titles @ documents.T
    np.fill_diagonal(similarities, -1.0)
    nearest = similarities.max(axis=1)
    floor, likely = np.quantile(nearest, [1 - FLOOR_ALERT_RATE, 1 - LIKELY_ALERT_RATE])
    return Bounds(round(float(floor), 4), round(float(likely), 4))


def sample(size: int) -> NDArray[np.intp]:
    """The places of at most `SAMPLE` of `size` things, spread evenly."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.intp))


def calibrate(embedder: Embedder, progress: Callable[[Sequence[str]], Iterable[str]] = iter) -> SearchProfile:
    """Sets and stores the bounds of the embedder's model from a sample of the tickets.

    `progress` may show how far the embedding of the titles has come. Raises TooFewTickets, EmbeddingError.
    """
    model = model_key(embedder)
    titles, documents = _sampled(model)
    asked = np.stack([embedder.embed_query(title) for title in progress(titles)])
    return _store(model, bounds(asked, documents), len(titles))


def calibrate_first(embedder: Embedder) -> bool:
    """Calibrates a model that never was, once it covers every ticket; answers whether that is settled.

    Where every title would be a paid call over the network, the whole texts stand in for the titles: they
    are nearer to each other, so the bounds are on the high side until `manage.py calibrate_search` is run.
    """
    model = model_key(embedder)
    if profile_of(model).is_calibrated:
        return True
    if not IndexState.objects.filter(pk=model, completed_at__isnull=False).exists():
        return False
    try:
        profile = _calibrate_by_vectors(model) if embedder.remote else calibrate(embedder)
    except (TooFewTickets, EmbeddingError):
        return False
    logger.info("calibrated %s by %d tickets", model, profile.calibrated_tickets)
    return True


def _calibrate_by_vectors(model: str) -> SearchProfile:
    titles, documents = _sampled(model)
    return _store(model, bounds(documents, documents), len(titles))


def _sampled(model: str) -> tuple[list[str], Vectors]:
    """The titles and vectors of a sample of the tickets."""
    with connection.cursor() as cursor:
        cursor.execute(SAMPLE_SQL, [model, SAMPLE])
        rows = [(title, vector) for title, vector in cursor.fetchall() if title.strip()]
    if len(rows) < FEWEST_TICKETS:
        raise TooFewTickets(
            f"Calibration needs at least {FEWEST_TICKETS} tickets with a vector of {model}, there are "
            f"{len(rows)}: run manage.py embed_worker --once first."
        )
    return [title for title, _ in rows], np.array([vector for _, vector in rows], dtype=np.float32)


def _store(model: str, found: Bounds, tickets: int) -> SearchProfile:
    profile = profile_of(model)
    profile.floor, profile.likely = found.floor, found.likely
    profile.alert_rate = LIKELY_ALERT_RATE
    profile.calibrated_at = timezone.now()
    profile.calibrated_tickets = tickets
    verdicts = judged(model)
    profile.precision = precision(verdicts, found.likely) if len(verdicts) >= FEWEST_VERDICTS else None
    profile.save()
    return profile


def judged(model: str) -> list[tuple[float, bool]]:
    """The cosine of each pair that a person judged, and whether it was the same problem."""
    verdicts = Verdict.objects.filter(search__model=model).select_related("search")
    pairs = ((_cosine(verdict.search, verdict.candidate_id), verdict.judgement) for verdict in verdicts)
    return [
        (cosine, judgement == Verdict.Judgement.SAME) for cosine, judgement in pairs if cosine is not None
    ]


def _cosine(search: SearchLog | None, ticket_id: int) -> float | None:
    hits = search.hits if search else []
    return next((hit.get("similarity") for hit in hits if hit.get("id") == ticket_id), None)


def precision(verdicts: Sequence[tuple[float, bool]], likely: float) -> float | None:
    """Of the judged pairs that stood out, the share that was the same problem; None where none stood out."""
    outstanding = [same for cosine, same in verdicts if cosine >= likely]
    return sum(outstanding) / len(outstanding) if outstanding else None
