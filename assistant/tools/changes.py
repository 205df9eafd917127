"""What an update changed, in a form that can be shown, told to the model, and taken back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model

from tickets.models import Category, TicketEvent

REFERENCES: dict[str, type[Model]] = {"category": Category, "assignee": User}


def recorded(events: Iterable[TicketEvent]) -> list[dict[str, Any]]:
    """The events of one change as `[{"field", "old", "new", "old_ref"}]`, for `ToolCall.changes`."""
    return [
        {"field": event.field, "old": event.old, "new": event.new, "old_ref": event.old_ref}
        for event in events
    ]


def values_before(changes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The field values that restore what was there before; `ObjectDoesNotExist` if that is gone."""
    return {change["field"]: _value_before(change) for change in changes}


def _value_before(change: dict[str, Any]) -> Any:
    model = REFERENCES.get(change["field"])
    if model is None:
        return change["old"]
    return None if change["old_ref"] is None else model._default_manager.get(pk=change["old_ref"])
