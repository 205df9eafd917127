"""Checks of what is stored: coverage, workers, failures, and the vectors themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from retrieval import replica, second_stage
from retrieval.index import MEASURED, counted_state
from retrieval.models import DuplicateCheck, IndexState, TicketEmbedding, WorkerState

from .check import Check, State, register, verdict
from .subject import Row, Subject

LONGEST_WAIT = timedelta(minutes=15)
LONGEST_LAG_SECONDS = 60
HEARTBEAT_GRACE_SECONDS = 60
MOST_FAILED = 0.01
MANY_SHORTENED, MOST_SHORTENED = 0.2, 0.5
MOST_UNLIKE_HASH = 0.0
MOST_IDENTICAL = 0.01
FEWEST_CHARS = 10
UNIT_TOLERANCE = 0.02  # halfvec has 11 bits for each number
AGREEMENT_SAMPLE = 20
REASONS_SHOWN = 3

OLDEST = """
    SELECT extract(epoch FROM now() - min(t.updated_at))::float FROM (
        SELECT t.id FROM tickets_ticket t
        LEFT JOIN retrieval_ticketembedding e ON e.model = %(model)s AND e.ticket_id = t.id
        WHERE e.content_hash IS DISTINCT FROM t.content_hash
            AND e.failed_hash IS DISTINCT FROM t.content_hash
        ORDER BY t.id LIMIT 1000
    ) AS waiting JOIN tickets_ticket t USING (id)"""

LENGTHS = """
    SELECT count(*), count(*) FILTER (WHERE length = 0),
        count(*) FILTER (WHERE abs(length - 1) > %(tolerance)s)
    FROM (
        SELECT l2_norm(embedding) AS length FROM retrieval_ticketembedding
        WHERE model = %(model)s AND embedding IS NOT NULL
    ) AS lengths"""


@register
def provider(subject: Subject) -> Check:
    off = subject.off
    return Check(
        "provider",
        _("Embedding provider"),
        settings.EMBEDDING_PROVIDER if off else subject.model,
        _("switched on"),
        verdict(fail=False, warn=off is not None),
        str(off or ""),
    )


@register
def coverage(subject: Subject) -> Check | None:
    if subject.off:
        return None
    state = counted_state(subject.model)
    seconds = _oldest_wait(subject.model) if state.indexed < state.total else None
    late = seconds is not None and seconds > LONGEST_WAIT.total_seconds()
    figure = _("%(indexed)s of %(total)s tickets") % {
        "indexed": whole(state.indexed),
        "total": whole(state.total),
    }
    if seconds is not None:
        figure += "; " + _("the oldest has waited for %(time)s") % {"time": duration(seconds)}
    limit = _("none waits longer than %(time)s") % {"time": duration(LONGEST_WAIT.total_seconds())}
    advice = _(
        "Look at the worker below; while it fills in many tickets this is to be expected. Until then these"
        " tickets are found by words only."
    )
    return Check("coverage", _("Tickets with a vector"), figure, limit, verdict(fail=late), advice * late)


@register(quick=True)
def backlog(subject: Subject) -> Check | None:
    """By the workers' own count; only if that shows a wait, the tickets themselves are looked at."""
    if subject.off:
        return None
    state = IndexState.objects.filter(pk=subject.model).first()
    waits = state is not None and state.total - state.indexed > state.failed
    seconds = (_oldest_wait(subject.model) if waits else None) or 0.0
    late = seconds > LONGEST_WAIT.total_seconds()
    figure = whole(max(0, state.total - state.indexed - state.failed)) if state else "0"
    limit = _("none waits longer than %(time)s") % {"time": duration(LONGEST_WAIT.total_seconds())}
    advice = _("New tickets are not found by meaning: start more workers, or look why they do not get on.")
    return Check(
        "backlog", _("Backlog by the workers' count"), figure, limit, verdict(fail=late), advice * late
    )


def _oldest_wait(model: str) -> float | None:
    """Seconds; tickets whose text could not be embedded do not count, they have a line of their own."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST, {"model": model})
        seconds: float | None = cursor.fetchone()[0]
        return seconds


def workers_alive() -> QuerySet[WorkerState]:
    """Three missed polls and some time to work count as silence."""
    silence = timedelta(seconds=3 * settings.EMBED_POLL_SECONDS + HEARTBEAT_GRACE_SECONDS)
    return WorkerState.objects.exclude(activity=WorkerState.Activity.STOPPED).filter(
        heartbeat_at__gte=Now() - silence
    )


@register
def worker(subject: Subject) -> Check | None:
    if subject.off:
        return None
    states = list(workers_alive().values_list("activity", "reason"))
    paused = [reason for activity, reason in states if activity == WorkerState.Activity.PAUSED]
    figure = ngettext("%(count)s worker", "%(count)s workers", len(states)) % {"count": len(states)}
    if paused:
        figure += "; " + _("paused: %(reason)s") % {"reason": paused[0]}
    advice = ""
    if not states:
        advice = _("Start manage.py embed_worker: new tickets are not found by meaning.")
    elif paused:
        advice = _("Remove the reason; the worker goes on by itself.")
    state = verdict(fail=len(paused) == len(states), warn=bool(paused))
    return Check("worker", _("Workers"), figure, _("at least one that works"), state, advice)


@register(quick=True)
def search_replica(subject: Subject) -> Check | None:
    if not replica.is_configured():
        return None
    try:
        lag: float | None = replica.lag_seconds()
    except OperationalError:
        lag = None
    figure = _("away") if lag is None else _("%(time)s behind") % {"time": duration(lag)}
    limit = _("at most %(time)s behind") % {"time": duration(LONGEST_LAG_SECONDS)}
    late = lag is None or lag > LONGEST_LAG_SECONDS
    advice = _("Searches read from the primary while it is away, and find fresh tickets late while it lags.")
    return Check(
        "search_replica",
        _("Replica for searches"),
        figure,
        limit,
        verdict(fail=False, warn=late),
        advice * late,
    )


@register
def failed(subject: Subject) -> Check | None:
    if subject.off:
        return None
    rows = TicketEmbedding.objects.filter(model=subject.model, failed_hash__isnull=False)
    reasons = list(rows.values_list("error").annotate(count=Count("pk")).order_by("-count"))
    count = sum(number for _reason, number in reasons)
    total = max(1, counted_state(subject.model).total)
    named = [f"{whole(number)} × {reason[:120]}" for reason, number in reasons[:REASONS_SHOWN]]
    figure = f"{whole(count)}{': ' if named else ''}{'; '.join(named)}"
    advice = _(
        "Read the reasons under “Ticket embeddings” in the admin; a changed ticket is tried again at once."
    )
    return Check(
        "failed",
        _("Tickets that could not be embedded"),
        figure,
        _("at most %(share)s of the tickets") % {"share": percent(MOST_FAILED)},
        verdict(fail=count > MOST_FAILED * total, warn=count > 0),
        advice if count else "",
    )


@register
def shortened(subject: Subject) -> Check | None:
    if not subject.rows:
        return None
    share = _share(subject.rows, lambda row: row.is_shortened)
    state = verdict(fail=share > MOST_SHORTENED, warn=share > MANY_SHORTENED)
    advice = _("Much of the text is not searched: take a model with a larger window.")
    return Check(
        "shortened",
        _("Texts that were shortened"),
        percent(share),
        _("at most %(share)s") % {"share": percent(MANY_SHORTENED)},
        state,
        advice if state != State.OK else "",
    )


@register
def hashes(subject: Subject) -> Check | None:
    """Recomputed here from the text. A ticket that was changed a moment ago is rightly behind."""
    rows = [row for row in subject.rows if not row.touched]
    if not rows:
        return None
    right = _share(rows, lambda row: row.row_hash == row.true_hash)
    bad = 1 - right > MOST_UNLIKE_HASH
    advice = _(
        "Vectors belong to other texts than the tickets have: look at the worker, and compare with a backup."
    )
    figure = _("%(share)s of %(count)s") % {"share": percent(right), "count": len(rows)}
    return Check(
        "hashes", _("Vectors of the current text"), figure, percent(1), verdict(fail=bad), advice * bad
    )


@register
def unit_length(subject: Subject) -> Check | None:
    """Of all vectors, not of the sample: a single one spoils the order of every search that meets it."""
    if not subject.rows:
        return None
    with connection.cursor() as cursor:
        cursor.execute(LENGTHS, {"model": subject.index.model, "tolerance": UNIT_TOLERANCE})
        count, zero, other = cursor.fetchone()
    figure = _("%(zero)s zero, %(other)s of another length than 1, of %(count)s") % {
        "zero": whole(zero), "other": whole(other - zero), "count": whole(count),
    }  # fmt: skip
    advice = _("Such vectors rank wrongly: delete their rows, and the worker makes them anew.")
    return Check(
        "unit_length", _("Length of the vectors"), figure, "0", verdict(fail=other > 0), advice * (other > 0)
    )


@register
def identical(subject: Subject) -> Check | None:
    if not subject.rows:
        return None
    texts: defaultdict[bytes, set[str]] = defaultdict(set)
    for row in _sound(subject.rows):
        texts[row.vector.tobytes()].add(subject.embedded_text(row))
    count = sum(len(group) for group in texts.values() if len(group) > 1)
    share = count / len(subject.rows)
    bad = share > MOST_IDENTICAL
    figure = _("%(count)s of %(total)s") % {"count": count, "total": len(subject.rows)}
    limit = _("at most %(share)s") % {"share": percent(MOST_IDENTICAL)}
    advice = _("The provider answers different texts with one vector: check the model, then embed anew.")
    return Check(
        "identical", _("Identical vectors of different texts"), figure, limit, verdict(fail=bad), advice * bad
    )


@register
def median_length(subject: Subject) -> Check | None:
    if not subject.rows:
        return None
    median = float(np.median([row.embedded_chars for row in subject.rows]))
    bad = median < FEWEST_CHARS
    figure = _("%(count)s characters") % {"count": whole(median)}
    limit = _("at least %(count)s characters") % {"count": FEWEST_CHARS}
    advice = _("Hardly any text is embedded: see whether tickets arrive with their description.")
    return Check(
        "median_length", _("Median of the embedded length"), figure, limit, verdict(fail=bad), advice * bad
    )


@register
def second_stage_agreement(subject: Subject) -> Check | None:
    if not subject.has_index:
        return None
    found = second_stage.status(subject.index.model) if subject.index.state.counted_at else None
    label = _("Agreement of the index with the exact search")
    limit = _("at least %(share)s") % {"share": percent(second_stage.LEAST_RECALL)}
    used = subject.index.state.second_stage
    if found is None or (not found.exists and not used):
        return Check("second_stage_agreement", label, _("no index, every search is exact"), limit, State.OK)
    advice = _("Run manage.py vector_index create, or drop to search exactly.")
    if not found.valid:
        return Check(
            "second_stage_agreement", label, _("the index is missing or unfinished"), limit,
            verdict(fail=bool(used), warn=True), advice,
        )  # fmt: skip
    recall = second_stage.agreement(subject.index.model, AGREEMENT_SAMPLE)
    state = verdict(fail=bool(used) and recall < second_stage.LEAST_RECALL, warn=not used)
    return Check(
        "second_stage_agreement", label, percent(recall), limit, state, advice if state != State.OK else ""
    )


@register
def profile(subject: Subject) -> Check | None:
    if subject.off:
        return None
    kept = subject.profile
    missing = []
    if not (kept.evidence or subject.model in MEASURED):
        missing.append(_("this model was never measured here"))
    if not kept.is_calibrated:
        missing.append(_("not calibrated"))
    advice = _(
        "Run manage.py calibrate_search, and manage.py evaluate_retrieval with labelled pairs of your own."
    )
    return Check(
        "profile",
        _("Weights and bands"),
        "; ".join(missing) or _("measured and calibrated"),
        _("measured and calibrated"),
        verdict(fail=False, warn=bool(missing)),
        advice if missing else "",
    )


@register
def duplicate_checks(subject: Subject) -> Check | None:
    if subject.off:
        return None
    due = DuplicateCheck.objects.filter(checked_at__isnull=True)
    late = due.aggregate(
        late=Count("pk", filter=Q(due_at__lt=Now() - LONGEST_WAIT)), broken=Count("pk", filter=~Q(error=""))
    )
    bad = bool(late["late"])
    figure = _("%(late)s late, %(broken)s with an error") % late
    limit = _("none waits longer than %(time)s") % {"time": duration(LONGEST_WAIT.total_seconds())}
    advice = _("Nobody is told about duplicates of these tickets: look at the worker and its log.")
    return Check(
        "duplicate_checks",
        _("Checks for duplicates that are due"),
        figure,
        limit,
        verdict(fail=bad),
        advice * bad,
    )


def _sound(rows: list[Row]) -> list[Row]:
    return [row for row in rows if abs(float(np.linalg.norm(row.vector)) - 1) <= UNIT_TOLERANCE]


def _share(rows: list[Row], holds: Any) -> float:
    return Counter(map(holds, rows))[True] / len(rows)


def whole(number: float) -> str:
    return number_format(round(number), use_l10n=True, force_grouping=True)


def percent(share: float) -> str:
    return f"{number_format(share * 100, 0 if share in (0, 1) or share >= 0.1 else 1)} %"


def duration(seconds: float) -> str:
    """In the largest unit that gives at least two."""
    for size, unit in ((86_400, _("days")), (3_600, _("hours")), (60, _("minutes"))):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    unit = _("seconds")  # not inside the f-string, where makemessages does not look
    return f"{seconds:.0f} {unit}"
