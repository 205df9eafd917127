"""The same change to many tickets, in steps short enough for a request.

Each ticket is changed like any other: what is refused for one holds up none of the others and is reported
with its reason. A chunk of tickets is one transaction together with its report, so that none is changed
without being reported, or twice; within it each ticket has a savepoint. A run left half-way can be continued.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from time import monotonic
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from . import clock
from .models import BulkRun, Category, Ticket, Via
from .permissions import may_change

MOST = 10_000  # tickets in one run
CHUNK = 100  # tickets in memory at a time
SECONDS = 1.5  # one step works no longer than that, plus one chunk
# Merges the first into the second, in the name of a person.
Merge = Callable[[Ticket, Ticket, User], None]


def begin(
    ids: Collection[int], *, by: User, changes: dict[str, Any] | None = None, target: Ticket | None = None
) -> BulkRun:
    """A run over `ids` (at most `MOST`); nothing is changed yet. `changes` takes plain values, ids for people
    and categories."""
    if len(ids) > MOST:
        raise ValueError(f"at most {MOST} tickets in one run")
    return BulkRun.objects.create(by=by, ids=sorted(set(ids)), changes=changes or {}, target=target)


def unfinished(by: User) -> BulkRun | None:
    """The run that `by` has lately left half-way, without its lists."""
    lately = BulkRun.objects.filter(by=by, finished_at=None, started_at__gt=clock.now() - timedelta(days=1))
    return lately.only("position").order_by("-pk").first()


def advance(run_id: int, by: User, seconds: float = SECONDS, *, merge: Merge = Ticket.merge_into) -> BulkRun:
    """Go on with a run for a moment. Raises `BulkRun.DoesNotExist` for somebody else's run."""
    until = monotonic() + seconds
    while True:
        with transaction.atomic():
            run = BulkRun.objects.select_for_update(no_key=True).get(pk=run_id, by=by)
            if run.finished_at is None:
                _next_chunk(run, merge)
        if run.finished_at is not None or monotonic() >= until:
            return run


def _next_chunk(run: BulkRun, merge: Merge) -> None:
    ids = run.ids[run.position : run.position + CHUNK]
    Ticket.lock_all(ids, run.target)  # so that no two runs ever wait for each other
    tickets = Ticket.objects.visible_to(run.by).defer("description", "resolution").in_bulk(ids)
    changes = _values(run)
    for pk in ids:
        _one(run, pk, tickets.get(pk), changes, merge)
    run.position += len(ids)
    if run.position >= len(run.ids):
        run.finished_at = clock.now()
    run.save(update_fields=["position", "done", "unchanged", "refused", "finished_at"])


def _values(run: BulkRun) -> dict[str, Any]:
    """The changes with the rows they name. What has been deleted stays an id, which is refused."""
    models: dict[str, Any] = {"assignee": User, "category": Category}
    return {
        name: models[name].objects.filter(pk=value).first() or value if value and name in models else value
        for name, value in run.changes.items()
    }


def _one(run: BulkRun, pk: int, ticket: Ticket | None, changes: dict[str, Any], merge: Merge) -> None:
    try:
        with transaction.atomic():
            changed = _apply(run, ticket, changes, merge)
    except ValidationError as error:
        run.refused.append([pk, " ".join(error.messages)])
    except Ticket.DoesNotExist:
        run.refused.append([pk, _("It has been deleted in the meantime.")])
    else:
        (run.done if changed else run.unchanged).append(pk)


def _apply(run: BulkRun, ticket: Ticket | None, changes: dict[str, Any], merge: Merge) -> bool:
    if not may_change(run.by):
        raise ValidationError(_("You may no longer change tickets."))
    if ticket is None:
        raise Ticket.DoesNotExist
    if changes:
        if any(isinstance(changes.get(name), int) for name in ("assignee", "category")):
            raise ValidationError(_("The person or the category has been deleted in the meantime."))
        return bool(ticket.change(by=run.by, via=Via.ADMIN, **changes))
    if run.target is None:
        raise ValidationError(_("The ticket to merge into has been deleted in the meantime."))
    merge(ticket, run.target, run.by)
    return True
