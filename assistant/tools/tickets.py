"""The tools that read and write tickets. Each goes through the same rules as the admin and the API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from assistant import gate
from assistant.tools.changes import recorded
from assistant.tools.errors import ToolError
from assistant.tools.results import (
    COMMENT_SHOWN,
    DESCRIPTION_SHOWN,
    RESOLUTION_SHOWN,
    RESULT_BUDGET,
    Result,
    Seen,
    age_days,
    cut,
    seen,
    seen_hits,
)
from assistant.tools.scope import Scope
from retrieval.judging import belong_to
from retrieval.results import SearchOutcome
from retrieval.search import find_similar
from tickets.models import Comment, StaleTicket, Ticket, Via
from tickets.querysets import TicketQuerySet
from tickets.services import create_ticket as create

NOBODY = {"nobody", "none"}
DEFAULT_LISTED = 10
ORDERS: dict[str, tuple[str, ...]] = {
    "newest": ("-created_at", "-id"),
    "oldest": ("created_at", "id"),
    "recently_updated": ("-updated_at", "-id"),
}
URGENCY = [Ticket.Priority.URGENT, Ticket.Priority.HIGH, Ticket.Priority.NORMAL, Ticket.Priority.LOW]


# -- create ------------------------------------------------------------------------------------------------


def search_own_text(scope: Scope, arguments: dict[str, Any]) -> SearchOutcome:
    """The gate's own look at the text of the new ticket; may wait for the network."""
    scope.require_add()
    text = f"{arguments['title']}\n{arguments['description']}"
    return find_similar(text, user=scope.user, exclude=scope.judged_different())


def create_ticket(scope: Scope, arguments: dict[str, Any], own_search: SearchOutcome | None) -> Result:
    scope.require_add()
    assert own_search is not None
    try:
        checked = gate.check(scope.conversation, own_search)
    except gate.GateClosed as closed:
        shown = seen_hits(closed.shown.hits) if closed.shown else {}
        data = {"error": closed.sentence, **closed.data}
        return Result(data, is_error=True, error=closed.code, search=closed.shown, seen=shown)
    ticket = create(
        reporter=scope.user,
        title=arguments["title"],
        description=arguments["description"],
        source=Ticket.Source.CHAT,
        priority=arguments.get("priority", Ticket.Priority.NORMAL),
        category=scope.category(arguments["category"]) if "category" in arguments else None,
        duplicate_check=checked,
    )
    told_apart = scope.conversation.known_tickets.filter(judgement="different").values_list(
        "ticket", flat=True
    )
    belong_to(ticket, list(told_apart), by=scope.user, since=scope.conversation.created_at)
    data = {"created": True, "ticket": {"id": ticket.pk, "title": ticket.title, "duplicate_check": checked}}
    return Result(data, ticket=ticket, creates=True, seen={ticket.pk: seen(ticket)})


# -- update ------------------------------------------------------------------------------------------------


def update_ticket(scope: Scope, arguments: dict[str, Any], _search: SearchOutcome | None) -> Result:
    ticket = scope.ticket(arguments["ticket_id"])
    scope.require_change()
    changes = {key: _field_value(scope, key, value) for key, value in arguments.items() if key != "ticket_id"}
    if not changes:
        raise ToolError("Name at least one field to change.")
    try:
        events = ticket.change(
            by=scope.user, via=Via.CHAT, expected_version=scope.version_seen(ticket), **changes
        )
    except StaleTicket as stale:
        return _stale(stale)
    changed = recorded(events)
    data = {"ticket_id": ticket.pk, "changes": [_change_for_model(change) for change in changed]}
    return Result(
        data, ticket=ticket, changes=changed, version_after=ticket.version, seen={ticket.pk: seen(ticket)}
    )


def _field_value(scope: Scope, field: str, value: str) -> Any:
    if field == "category":
        return None if value.casefold() in NOBODY else scope.category(value)
    if field == "assignee":
        return None if value.casefold() in NOBODY else scope.person(value)
    return value


def _change_for_model(change: dict[str, Any]) -> dict[str, str]:
    how = "call get_ticket to read it"
    return {
        "field": change["field"],
        "old": cut(change["old"], RESOLUTION_SHOWN, how),
        "new": cut(change["new"], RESOLUTION_SHOWN, how),
    }


def _stale(stale: StaleTicket) -> Result:
    ticket = stale.current
    data = {
        "error": (
            f"Not changed: ticket {ticket.pk} was changed by somebody else since you last read it. Its "
            "current state is below. Tell the person what has changed and ask, or repeat the call if it "
            "clearly still applies."
        ),
        "refused": True,
        "changed_meanwhile": [
            {"field": event.field or event.kind, "old": event.old[:200], "new": event.new[:200]}
            for event in stale.events[-10:]
        ],
        "ticket": _whole(ticket, [], 0),
    }
    return Result(data, is_error=True, error="stale", ticket=ticket, seen={ticket.pk: seen(ticket)})


# -- read --------------------------------------------------------------------------------------------------


def get_ticket(scope: Scope, arguments: dict[str, Any], _search: SearchOutcome | None) -> Result:
    ticket = scope.ticket(arguments["ticket_id"])
    comments = list(ticket.thread())
    start = arguments.get("from_character", 0)
    if start and start >= len(ticket.description):
        raise ToolError(
            f"from_character is behind the end: the description has {len(ticket.description)} characters."
        )
    data = {"ticket": _whole(ticket, comments, start)}
    bodies = [comment.body for comment in comments]
    return Result(data, ticket=ticket, seen={ticket.pk: seen(ticket, *bodies)})


def _whole(ticket: Ticket, comments: list[Comment], start: int) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": ticket.pk,
        "title": ticket.title,
        "description": _description(ticket, start),
        "status": ticket.status,
        "priority": ticket.priority,
        "category": ticket.category.name if ticket.category else None,
        "reporter": ticket.reporter.get_username(),
        "assignee": ticket.assignee.get_username() if ticket.assignee else None,
        "resolution": cut(ticket.resolution, DESCRIPTION_SHOWN, f"the person can open {_page(ticket)}"),
        "duplicate_of": ticket.duplicate_of_id,
        "created_at": ticket.created_at.isoformat(timespec="minutes"),
        "updated_at": ticket.updated_at.isoformat(timespec="minutes"),
    }
    data["comments"], left_out = _within_budget(ticket, comments)
    if left_out:
        data["comments_left_out"] = (
            f"{left_out} older comments of {len(comments)} are left out; the person can open {_page(ticket)}"
        )
    return data


def _description(ticket: Ticket, start: int) -> str:
    text = ticket.description[start:]
    end = start + DESCRIPTION_SHOWN
    return cut(text, DESCRIPTION_SHOWN, f"call get_ticket with from_character {end} to read on")


def _within_budget(ticket: Ticket, comments: list[Comment]) -> tuple[list[dict[str, Any]], int]:
    """The newest comments that fit, oldest of them first, and how many do not."""
    room = RESULT_BUDGET - 2 * DESCRIPTION_SHOWN
    shown: list[dict[str, Any]] = []
    for comment in reversed(comments):
        body = cut(comment.body, COMMENT_SHOWN, f"the person can open {_page(ticket)}")
        room -= len(body) + 100
        if room < 0:
            break
        shown.append(
            {
                "author": comment.author.get_username(),
                "body": body,
                "internal": comment.internal,
                "created_at": comment.created_at.isoformat(timespec="minutes"),
            }
        )
    return shown[::-1], len(comments) - len(shown)


def _page(ticket: Ticket) -> str:
    return f"/tickets/{ticket.pk}/"


# -- list --------------------------------------------------------------------------------------------------


def list_tickets(scope: Scope, arguments: dict[str, Any], _search: SearchOutcome | None) -> Result:
    scope.require_view()
    tickets = _filtered(scope, arguments)
    total = tickets.count()
    page = list(
        _ordered(tickets, arguments.get("order", "newest")).select_related("assignee")[
            : arguments.get("limit", DEFAULT_LISTED)
        ]
    )
    data: dict[str, Any] = {"total": total, "shown": len(page), "tickets": [_row(ticket) for ticket in page]}
    if total > len(page):
        data["more"] = (
            f"{total - len(page)} more tickets are not shown; ask for a larger limit or a narrower filter."
        )
    return Result(data, seen=_seen_rows(page))


def _seen_rows(tickets: Iterable[Ticket]) -> dict[int, Seen]:
    return {ticket.pk: seen(ticket) for ticket in tickets}


def _filtered(scope: Scope, arguments: dict[str, Any]) -> TicketQuerySet:
    tickets = Ticket.objects.visible_to(scope.user)
    status = arguments.get("status")
    if status == "unresolved":
        tickets = tickets.unresolved()
    elif status:
        tickets = tickets.filter(status=status)
    if "priority" in arguments:
        tickets = tickets.filter(priority=arguments["priority"])
    for field in ("assignee", "category"):
        if field in arguments:
            tickets = tickets.filter(**{field: _field_value(scope, field, arguments[field])})
    if "reporter" in arguments:
        tickets = tickets.filter(reporter=scope.person(arguments["reporter"]))
    if "created_since" in arguments:
        tickets = tickets.filter(created_at__gte=_moment(arguments["created_since"]))
    return tickets


def _ordered(tickets: TicketQuerySet, order: str) -> TicketQuerySet:
    if order == "most_urgent":
        return tickets.annotate(urgency=_urgency()).order_by("urgency", "-created_at", "-id")
    return tickets.order_by(*ORDERS[order])


def _urgency() -> Any:
    from django.db.models import Case, IntegerField, Value, When

    ranks = [When(priority=priority, then=Value(rank)) for rank, priority in enumerate(URGENCY)]
    return Case(*ranks, default=Value(len(URGENCY)), output_field=IntegerField())


def _moment(text: str) -> datetime:
    """A date or a time in ISO 8601; without a zone, that of the helpdesk."""
    try:
        moment = parse_datetime(text)
        day = None if moment else parse_date(text)
    except ValueError:
        moment = day = None
    if day is not None:
        moment = datetime.combine(day, time.min)
    if moment is None:
        raise ToolError(
            "created_since must be a date or time in ISO 8601, such as 2026-03-31 or 2026-03-31T08:00."
        )
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def _row(ticket: Ticket) -> dict[str, Any]:
    return {
        "id": ticket.pk,
        "title": ticket.title,
        "status": ticket.status,
        "priority": ticket.priority,
        "age_days": age_days(ticket),
        "assignee": ticket.assignee.get_username() if ticket.assignee else None,
    }


# -- comment -----------------------------------------------------------------------------------------------


def add_comment(scope: Scope, arguments: dict[str, Any], _search: SearchOutcome | None) -> Result:
    ticket = scope.ticket(arguments["ticket_id"])
    scope.require_comment()
    comment = ticket.add_comment(
        by=scope.user, body=arguments["body"], internal=arguments.get("internal", False), via=Via.CHAT
    )
    target = comment.ticket
    data: dict[str, Any] = {"ticket_id": target.pk, "comment_id": comment.pk}
    if target.pk != ticket.pk:
        data["redirected"] = f"Ticket {ticket.pk} is a duplicate of {target.pk}; the comment is there."
    return Result(data, ticket=target, seen={target.pk: seen(target)})


def sentences(error: ValidationError) -> str:
    """What the ticket rules say about wrong values, field by field."""
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items())
