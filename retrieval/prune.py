"""Dropping the vectors of models that are no longer used."""

from __future__ import annotations

from django.db import connection
from django.utils.translation import gettext as _

from .models import IndexState, SearchProfile, TicketEmbedding

CHUNK = 5_000
DELETE = """
    DELETE FROM retrieval_ticketembedding WHERE id IN (
        SELECT id FROM retrieval_ticketembedding WHERE model = %s LIMIT %s
    )"""


class Incomplete(Exception):
    """The model to keep does not cover the tickets yet, so the others are still needed."""


def prune(*, keep: str) -> dict[str, int]:
    """Deletes every other model's vectors, in short transactions; answers how many of each. Raises
    Incomplete.
    """
    others = set(TicketEmbedding.objects.exclude(model=keep).values_list("model", flat=True).distinct())
    others |= set(IndexState.objects.exclude(pk=keep).values_list("model", flat=True))
    if others and not IndexState.objects.filter(pk=keep, completed_at__isnull=False).exists():
        raise Incomplete(
            _("{model} does not cover the tickets yet; run embed_worker first.").format(model=keep)
        )
    return {model: _delete(model) for model in sorted(others)}


def _delete(model: str) -> int:
    IndexState.objects.filter(pk=model).delete()
    SearchProfile.objects.filter(pk=model, calibrated_at__isnull=True).delete()
    deleted = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(DELETE, [model, CHUNK])
            if not cursor.rowcount:
                return deleted
            deleted += cursor.rowcount
