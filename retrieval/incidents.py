"""Outages: many people report one thing within the hour. The worker proposes, a person decides.

Reports belong together when each is likely the same as one of the others and none is below the floor to
any: chains of loosely similar tickets make no incident. INCIDENT_TICKETS of them within
INCIDENT_WINDOW_MINUTES are proposed; later ones join. Confirming merges the reports into a parent (a
redirect, so it can be undone); from then on one status, one resolution and one thread hold for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from tickets.models import Ticket, Via
from tickets.permissions import may_add, may_change, may_comment
from tickets.services import create_ticket

from .calibration import Bounds
from .judging import is_merged, unmerge
from .models import Incident, IncidentMember, Verdict

LOCK = 7_316_202  # any number that no other advisory lock of this database uses
MOST = 60  # reports that one look compares; an incident grows beyond them report by report
State = Incident.State

# An import has its own times; what was solved at once or merged already is a report all the same.
NEAR = """
    SELECT t.id, t.created_at, e.embedding::real[]
    FROM tickets_ticket t
    JOIN retrieval_ticketembedding e
        ON e.model = %(model)s AND e.ticket_id = t.id AND e.content_hash = t.content_hash
    CROSS JOIN (
        SELECT embedding FROM retrieval_ticketembedding WHERE model = %(model)s AND ticket_id = %(id)s
    ) AS mine
    WHERE t.created_at BETWEEN %(from)s AND %(to)s AND t.source <> 'import'
        AND -(e.embedding <#> mine.embedding) >= %(floor)s
    ORDER BY e.embedding <#> mine.embedding, t.id
    LIMIT %(most)s"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What confirming has done: how many reports were merged, and a sentence for each that was not."""

    merged: int = 0
    refused: list[str] = field(default_factory=list)


# -- proposing -----------------------------------------------------------------------------------------------


def look_for_one(ticket: Ticket, model: str, limits: Bounds | None) -> Incident | None:
    """The incident that this new ticket belongs to, proposed or enlarged; None if there is none."""
    if limits is None or ticket.source == Ticket.Source.IMPORT:
        return None
    group = _reports_like(ticket, model, limits)
    if len(group) < settings.INCIDENT_TICKETS:
        return None
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        known = Incident.objects.filter(members__ticket__in=group).order_by("-pk").first()
        if known is not None and known.state in (State.DISMISSED, State.UNDONE):
            return None  # a person has said that it is none
        incident = known or Incident.objects.create(parent_id=_oldest(group))
        IncidentMember.objects.bulk_create(
            [IncidentMember(incident=incident, ticket_id=pk) for pk in group], ignore_conflicts=True
        )
    return incident


def _reports_like(ticket: Ticket, model: str, limits: Bounds) -> list[int]:
    window = timedelta(minutes=settings.INCIDENT_WINDOW_MINUTES)
    with connection.cursor() as cursor:
        cursor.execute(
            NEAR,
            {
                "model": model,
                "id": ticket.pk,
                "from": ticket.created_at - window,
                "to": ticket.created_at + window,
                "floor": limits.floor,
                "most": MOST,
            },
        )
        rows = cursor.fetchall()
    ids = [pk for pk, _when, _vector in rows]
    if ticket.pk not in ids:
        return []
    vectors = np.array([vector for _pk, _when, vector in rows], dtype=np.float32)
    together = belonging_together(vectors @ vectors.T, ids.index(ticket.pk), limits)
    times = {ids[number]: rows[number][1] for number in together}
    return fullest_window(times, ticket.pk, window)


def belonging_together(cosines: NDArray[np.float32], start: int, limits: Bounds) -> list[int]:
    """The places of the reports around `start` in a matrix of cosines: likely the same as one of the others,
    above the floor to all."""
    group = [start]
    farthest, nearest = cosines[start].copy(), cosines[start].copy()
    while True:
        farthest[group[-1]] = -1.0  # no member twice
        best = int(np.where(farthest >= limits.floor, nearest, -1.0).argmax())
        if farthest[best] < limits.floor or nearest[best] < limits.likely:
            return group
        group.append(best)
        np.minimum(farthest, cosines[best], out=farthest)
        np.maximum(nearest, cosines[best], out=nearest)


def fullest_window(times: dict[int, datetime], must_hold: int, window: timedelta) -> list[int]:
    """The ids of the fullest span of that length that holds one of them, oldest first."""
    in_order = sorted(times, key=lambda pk: (times[pk], pk))
    spans = (
        [pk for pk in in_order if times[first] <= times[pk] <= times[first] + window]
        for first in in_order
        if times[first] <= times[must_hold] <= times[first] + window
    )
    return max(spans, key=len)


def _oldest(group: Sequence[int]) -> int:
    """The oldest report that still stands for itself, if there is one."""
    standing = set(Ticket.objects.filter(pk__in=group, duplicate_of=None).values_list("pk", flat=True))
    return next((pk for pk in group if pk in standing), group[0])


# -- deciding ------------------------------------------------------------------------------------------------


def confirm(incident: Incident, *, by: User, parent: Ticket | None = None, title: str = "") -> Taken:
    """Merge the reports into `parent`, one of them or, without it, a new ticket of that title.

    Raises `ValidationError` if somebody has decided already or the title is wrong, `PermissionDenied`.
    """
    with transaction.atomic():
        incident = _locked(incident, by)
        if not incident.is_open:
            raise ValidationError(_already(incident))
        incident.parent = parent or _new_parent(title, by)
        _decide(incident, State.CONFIRMED, by)
        return _take_in(incident, by)


def take_in(incident: Incident, *, by: User) -> Taken:
    """Merge those reports as well that came after it was confirmed."""
    with transaction.atomic():
        incident = _locked(incident, by)
        if incident.state != State.CONFIRMED:
            raise ValidationError(_already(incident))
        return _take_in(incident, by)


def dismiss(incident: Incident, *, by: User) -> None:
    """These reports are no incident; they are not proposed as one again."""
    with transaction.atomic():
        incident = _locked(incident, by)
        if not incident.is_open:
            raise ValidationError(_already(incident))
        _decide(incident, State.DISMISSED, by)


def undo(incident: Incident, *, by: User) -> None:
    """Every report stands for itself again, with its status of before; a dismissed one is proposed again.

    What people have merged elsewhere since stays there.
    """
    with transaction.atomic():
        incident = _locked(incident, by)
        if incident.is_open:
            raise ValidationError(_already(incident))
        was_dismissed = incident.state == State.DISMISSED
        merged = incident.members.filter(merged=True)
        Ticket.lock_all(merged.values_list("ticket", flat=True))
        for member in merged.select_related("ticket"):
            if incident.parent is not None and is_merged(member.ticket, incident.parent):
                unmerge(member.ticket, by=by)
        incident.members.update(merged=False)
        _decide(incident, State.PROPOSED if was_dismissed else State.UNDONE, by)


def resolve(incident: Incident, *, by: User, resolution: str, comment: str) -> None:
    """Resolve the parent, and with it all reports, and tell everybody by one public comment."""
    if not may_comment(by):
        raise PermissionDenied
    with transaction.atomic():
        incident = _locked(incident, by)
        if incident.state != State.CONFIRMED or incident.parent is None:
            raise ValidationError(_already(incident))
        incident.parent.change(by=by, via=Via.ADMIN, status=Ticket.Status.RESOLVED, resolution=resolution)
        incident.parent.add_comment(by=by, body=comment, internal=False, via=Via.ADMIN)


def affected_people(incident: Incident) -> int:
    """How many people have this problem: who reported it, and who said "me too" in the chat."""
    reports = Ticket.objects.filter(
        Q(incident_member__incident=incident) | Q(duplicate_of__incident_member__incident=incident)
    )
    me_too = Verdict.objects.filter(
        ticket=None, judgement=Verdict.Judgement.SAME, candidate__incident_member__incident=incident
    )
    people = set(reports.values_list("reporter", flat=True)) | set(me_too.values_list("by", flat=True))
    return len(people - {None})


def _take_in(incident: Incident, by: User) -> Taken:
    parent = incident.parent
    assert parent is not None
    taken = Taken()
    merged = 0
    waiting = incident.members.filter(merged=False)
    Ticket.lock_all(waiting.values_list("ticket", flat=True), parent)
    for member in waiting.select_related("ticket").order_by("ticket"):
        if member.ticket_id == parent.pk or member.ticket.duplicate_of_id is not None:
            continue
        try:
            member.ticket.merge_into(parent, by)
        except ValidationError as error:
            taken.refused.extend(error.messages)
            continue
        member.merged = True
        member.save(update_fields=["merged"])
        merged += 1
    return Taken(merged, taken.refused)


def _new_parent(title: str, by: User) -> Ticket:
    if not may_add(by):
        raise PermissionDenied
    return create_ticket(
        reporter=by, title=title, description="", source=Ticket.Source.ADMIN, priority=Ticket.Priority.HIGH
    )


def _locked(incident: Incident, by: User) -> Incident:
    if not may_change(by):
        raise PermissionDenied
    return Incident.objects.select_for_update(no_key=True).get(pk=incident.pk)


def _decide(incident: Incident, state: str, by: User) -> None:
    incident.state, incident.decided_by, incident.decided_at = state, by, Now()
    incident.save(update_fields=["state", "decided_by", "decided_at", "parent"])


def _already(incident: Incident) -> str:
    return _("Somebody has decided on this incident meanwhile: it is %(state)s.") % {
        "state": incident.get_state_display()
    }
