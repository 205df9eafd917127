"""What the assistant adds to the health of the search: turns that hang, and figures that never move."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from assistant.models import Turn
from assistant.statistics import ENOUGH_TURNS, suspicious
from retrieval.health import Check, State, Subject, register
from retrieval.health.check import verdict
from retrieval.health.stored import duration

SILENCE = timedelta(minutes=1)
LONG_TURN = timedelta(minutes=10)


@register(quick=True)
def running_turn(subject: Subject) -> Check:
    """The oldest turn that is being answered. A sign of life older than a minute: its process is dead."""
    now = timezone.now()
    running = Turn.objects.filter(status=Turn.Status.RUNNING, heartbeat_at__isnull=False)
    silent = running.order_by("heartbeat_at").values_list("heartbeat_at", flat=True).first()
    begun = running.order_by("started_at").values_list("started_at", flat=True).first()
    dead = silent is not None and now - silent > SILENCE
    long = begun is not None and now - begun > LONG_TURN
    figure = _("none is running")
    if silent is not None and begun is not None:
        figure = _("running for %(time)s, last sign of life %(silence)s ago") % {
            "time": duration((now - begun).total_seconds()),
            "silence": duration((now - silent).total_seconds()),
        }
    advice = _("A web process died while it answered; those that run close the turn within a minute.")
    return Check(
        "running_turn",
        _("Oldest running turn"),
        figure,
        _("a sign of life every %(time)s") % {"time": duration(SILENCE.total_seconds())},
        verdict(fail=dead, warn=long),
        advice if dead or long else "",
    )


@register
def turns_never_moved(subject: Subject) -> Check:
    still = sorted(suspicious())
    state = State.WARN if still else State.OK
    advice = _("The page of statistics names them; perhaps they are not measured at all.") if still else ""
    return Check(
        "turns_never_moved",
        _("Figures of turns that never moved"),
        ", ".join(still) or _("none"),
        _("none over %(count)s turns") % {"count": ENOUGH_TURNS},
        state,
        advice,
    )
