"""What the model and its tools did, in people's words: tool steps and what came of them, reasons to stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy

from assistant.models import ToolCall
from assistant.numbers import grouped

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LABELS: dict[str, StrOrPromise] = {
    "find_similar_tickets": _("Searching existing tickets"),
    "create_ticket": _("Creating a ticket"),
    "update_ticket": _("Changing a ticket"),
    "get_ticket": _("Reading a ticket"),
    "list_tickets": _("Listing tickets"),
    "add_comment": _("Adding a comment"),
}
UNKNOWN = _("Unknown tool")

ERRORS: dict[str, StrOrPromise] = {
    "no_search": _("Not created: existing tickets have to be searched first."),
    "unanswered": _("Not created: similar tickets wait for your answer."),
    "stale": _("Not changed: somebody else has changed the ticket in the meantime."),
    "forbidden": _("Not done: you lack the permission."),
    "unknown_ticket": _("There is no such ticket."),
    "unknown_tool": _("The assistant tried something that does not exist."),
    "cut": _("Not done: the request was cut off."),
    "steps": _("Not done: too many steps."),
    "repeated": _("Not done again: this step had run before."),
    "internal": _("Failed because of an internal fault; nothing was changed."),
}
REFUSED = _("Not done: the assistant's request was not valid.")

# Why the model stopped, in a column; `faults` has the sentences for whoever asked.
STOP_REASONS: dict[str, StrOrPromise] = {
    "end_turn": _("finished"),
    "tool_use": _("wanted a tool"),
    "pause_turn": _("paused"),
    "max_tokens": _("maximum length"),
    "model_context_window_exceeded": _("conversation too long"),
    "stop_sequence": _("stop marker"),
    "refusal": _("declined"),
}

FOUND = ngettext_lazy("%(count)d similar ticket found", "%(count)d similar tickets found", "count")
NOTHING = _("Searched, nothing similar found")
UNAVAILABLE = _("The search is not available")


def label(name: str) -> StrOrPromise:
    return LABELS.get(name, UNKNOWN)


def summary(call: ToolCall) -> StrOrPromise:
    """One line on what the call did."""
    if call.is_error:
        return ERRORS.get(call.error, REFUSED)
    return _SUMMARIES[call.name](call) if call.name in _SUMMARIES else ""


def _found(call: ToolCall) -> StrOrPromise:
    if call.outcome == "unavailable":
        return UNAVAILABLE
    return counted(FOUND, len(call.hits)) if call.outcome == "found" else NOTHING


def _listed(call: ToolCall) -> StrOrPromise:
    return _tickets(int(_data(call).get("total", 0)))


def _created(call: ToolCall) -> StrOrPromise:
    return format_lazy(_("Ticket #{id} created"), id=call.ticket_id)


def _changed(call: ToolCall) -> StrOrPromise:
    text = _("Ticket #{id} changed") if call.changes else _("Ticket #{id}: nothing to change")
    return format_lazy(text, id=call.ticket_id)


def _read(call: ToolCall) -> StrOrPromise:
    return format_lazy(_("Ticket #{id} read"), id=call.ticket_id)


def _commented(call: ToolCall) -> StrOrPromise:
    return format_lazy(_("Comment added to ticket #{id}"), id=call.ticket_id)


_SUMMARIES = {
    "find_similar_tickets": _found,
    "list_tickets": _listed,
    "create_ticket": _created,
    "update_ticket": _changed,
    "get_ticket": _read,
    "add_comment": _commented,
}


def _counted(text: Any, count: int) -> str:
    return str(text % {"count": count})


# A plural sentence with its number, translated when it is rendered.
counted = lazy(_counted, str)


def _counted_tickets(count: int) -> str:
    return ngettext("%(number)s ticket", "%(number)s tickets", count) % {"number": grouped(count)}


_tickets = lazy(_counted_tickets, str)


def _data(call: ToolCall) -> dict[str, Any]:
    data = json.loads(call.result)
    return data if isinstance(data, dict) else {}
