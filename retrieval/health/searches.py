"""Checks of what searches were answered, and probes that search by themselves."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import numpy as np
from django.db import connection
from django.db.models import Count
from django.utils.translation import gettext as _

from retrieval.candidates import collect, scope_of
from retrieval.documents import prepared
from retrieval.embedders import Embedder
from retrieval.models import SearchLog
from retrieval.search import LONGEST_QUERY, order
from tickets.models import Ticket

from .check import Check, State, register, verdict
from .stored import UNIT_TOLERANCE, percent, whole
from .subject import Row, Subject

ENOUGH_SEARCHES = 50
LATEST_SEARCHES = 1_000
MANY_UNAVAILABLE, MOST_UNAVAILABLE = 0.1, 0.5
KNOWN_ITEMS = 10
FEWEST_KNOWN = 0.9
FEWEST_PARAPHRASES = 0.7
NEAR = 0.005  # of equally near tickets any may come first

MOVED = """
    SELECT count(*), min(hits), max(hits), min(wanted), min(near), max(near),
        min(embed_ms), max(embed_ms), min(search_ms), max(search_ms)
    FROM (
        SELECT jsonb_array_length(hits) AS hits, (filters->>'limit')::int AS wanted,
            (hits->0->>'similarity')::float AS near, embed_ms, search_ms
        FROM retrieval_searchlog WHERE outcome IN ('found', 'nothing') ORDER BY id DESC LIMIT %s
    ) AS latest"""


@register
def searches(subject: Subject) -> Check:
    since = SearchLog.objects.extra(where=["created_at > now() - interval '1 day'"])
    counts = dict(since.values_list("outcome").annotate(count=Count("pk")))
    total, away = sum(counts.values()), counts.get("unavailable", 0)
    share = away / total if total else 0.0
    state = verdict(fail=share > MOST_UNAVAILABLE, warn=share > MANY_UNAVAILABLE)
    if subject.off and state == State.FAIL:
        state = State.WARN  # as it was set
    figure = _("%(found)s found, %(nothing)s found nothing, %(unavailable)s unavailable") % {
        name: whole(counts.get(name, 0)) for name in ("found", "nothing", "unavailable")
    }
    return Check(
        "searches",
        _("Searches of the last day"),
        figure,
        _("at most %(share)s unavailable") % {"share": percent(MANY_UNAVAILABLE)},
        state,
        _("The searches in the admin name the reason of each.") if state != State.OK else "",
    )


@register
def never_moved(subject: Subject) -> Check:
    """A figure that cannot move is probably not measured at all."""
    with connection.cursor() as cursor:
        cursor.execute(MOVED, [LATEST_SEARCHES])
        count, *ends = cursor.fetchone()
    still = _still(ends) if count >= ENOUGH_SEARCHES else []
    figure = ", ".join(still) or _("all have moved")
    if count < ENOUGH_SEARCHES:
        figure = _("only %(count)s searches so far") % {"count": count}
    advice = _(
        "Search for something that exists and for something that does not, and see where the figure"
        " comes from."
    )
    return Check(
        "never_moved",
        _("Figures of searches that never moved"),
        figure,
        _("none over %(count)s searches") % {"count": ENOUGH_SEARCHES},
        verdict(fail=bool(still)),
        advice if still else "",
    )


def _still(ends: list[float | None]) -> list[str]:
    low, high, wanted, near_low, near_high, embed_low, embed_high, search_low, search_high = ends
    # That there are always more hits than are shown is usual in a large corpus.
    figures = [(_("hits"), low == high != wanted)]
    figures += [
        (_("best similarity"), near_low == near_high),
        (_("time of embedding"), embed_low == embed_high),
        (_("time of searching"), search_low == search_high),
    ]
    return [name for name, is_still in figures if is_still]


@register(probe=True)
def known_items(subject: Subject) -> Check | None:
    """A ticket's own text has to find it first: by its vector, and in the order that people see."""
    rows = [row for row in subject.rows if _is_searchable(row)]
    if not rows:
        return None
    rows = random.sample(rows, min(KNOWN_ITEMS, len(rows)))
    found = sum(_finds_itself(subject, row) for row in rows)
    bad = found < FEWEST_KNOWN * len(rows)
    advice = _(
        "Vectors belong to other tickets or another model: compare the model of web and worker, then delete"
        " the ticket embeddings and let the worker make them anew."
    )
    return Check(
        "known_items",
        _("Tickets found first by their own text"),
        _("%(count)s of %(total)s") % {"count": found, "total": len(rows)},
        _("at least %(share)s") % {"share": percent(FEWEST_KNOWN)},
        verdict(fail=bad),
        advice * bad,
    )


def _is_searchable(row: Row) -> bool:
    """What is wrong with a vector otherwise has a line of its own."""
    sound = abs(float(np.linalg.norm(row.vector)) - 1) <= UNIT_TOLERANCE
    return sound and row.row_hash == row.ticket_hash and bool(row.text.strip())


def _finds_itself(subject: Subject, row: Row) -> bool:
    index = subject.index
    text = row.text[:LONGEST_QUERY]
    short, _kept = prepared(text, index.embedder.window_bytes, dilutes=index.embedder.dilutes)
    vector = index.embedder.embed_query(short)
    found = collect(text, vector, index, scope_of(Ticket.objects.all(), None, None))
    nearest = max(found.cosines.values(), default=0.0)
    own = found.cosines.get(row.ticket_id, -1.0)
    hits = order(text, found, index.profile, index.state.total)
    first = next(iter(hits), None)
    ranked = next((hit.score for hit in hits if hit.ticket_id == row.ticket_id), -1.0)
    return first is not None and own >= nearest - NEAR and ranked >= first.score - NEAR


@register(probe=True)
def paraphrases(subject: Subject) -> Check | None:
    """On vectors alone, beside the tickets: nothing is stored for it."""
    if subject.off:
        return None
    share = _paraphrases_found(subject.embedder)
    bad = share < FEWEST_PARAPHRASES
    advice = _("The model does not connect German with English: choose another one before people rely on it.")
    return Check(
        "paraphrases",
        _("German finds English and back"),
        percent(share),
        _("at least %(share)s") % {"share": percent(FEWEST_PARAPHRASES)},
        verdict(fail=bad),
        advice * bad,
    )


@cache
def _pairs() -> list[list[str]]:
    pairs: list[list[str]] = json.loads((Path(__file__).parent / "paraphrases.json").read_text("utf-8"))
    return pairs


def _paraphrases_found(embedder: Embedder) -> float:
    """The share of sentences whose counterpart in the other language comes first, both ways together."""
    german, english = zip(*_pairs(), strict=True)
    found = [
        np.argmax(documents @ embedder.embed_query(query)) == place
        for queries, documents in (
            (german, embedder.embed_documents(english)),
            (english, embedder.embed_documents(german)),
        )
        for place, query in enumerate(queries)
    ]
    return float(np.mean(found))
