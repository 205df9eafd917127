"""The tools as the model sees them: names, descriptions, schemas. The only place where they are defined.

Schemas are strict, and strict schemas take no bounds; `BOUNDS` and `LENGTHS` hold them and `arguments.py`
checks them. All text is English and constant: it is part of the cached prefix of every request.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from tickets.models import Ticket

MAX_ID = 2**63 - 1
MAX_LISTED = 50
MAX_TEXT = 50_000  # characters of a description, comment or resolution in one call

STATUSES = list(Ticket.Status.values)
PRIORITIES = list(Ticket.Priority.values)
ORDERS = ["newest", "oldest", "recently_updated", "most_urgent"]


def _tool(
    name: str, description: str, required: list[str], /, **properties: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "strict": True,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


def _choice(values: list[str], description: str) -> dict[str, Any]:
    return {"type": "string", "enum": values, "description": description}


_TICKET_ID = _number("Number of the ticket, without #.")

DEFINITIONS: list[dict[str, Any]] = [
    _tool(
        "find_similar_tickets",
        "Search existing tickets by meaning, in all languages at once. Call it before create_ticket whenever "
        'someone describes a problem. Returns "outcome" "found" with tickets (band "likely" or "possible"), '
        '"nothing" when it has looked and found none, or "unavailable" with the reason if it could not look.',
        ["query"],
        query=_text(
            "The problem in the person's own words and language, with error codes and names of devices."
        ),
        limit=_number("How many tickets at most."),
        include_closed=_flag("Whether resolved and closed tickets are searched too. Default true."),
    ),
    _tool(
        "create_ticket",
        "Create a ticket for a new problem, reported by the person you are talking to. Refused unless "
        "find_similar_tickets was called for this problem first, and unless the person has answered after "
        "seeing likely duplicates.",
        ["title", "description"],
        title=_text("One line that names the problem, at most 200 characters, in the person's language."),
        description=_text("All that the person has said about it, in their language. Nothing invented."),
        priority=_choice(PRIORITIES, "Only if the person has said how urgent it is. Default normal."),
        category=_text("Name of an existing category. Leave it out if unsure."),
    ),
    _tool(
        "update_ticket",
        "Change the named fields of a ticket and nothing else. Returns what changed from what to what. "
        "Refused with the current state if somebody has changed the ticket since you last read it.",
        ["ticket_id"],
        ticket_id=_TICKET_ID,
        title=_text("New title, at most 200 characters."),
        description=_text("New description; replaces the old one."),
        status=_choice(STATUSES, "New status."),
        priority=_choice(PRIORITIES, "New priority."),
        category=_text('Name of an existing category, or "none".'),
        assignee=_text('User name of a member of staff, "me" for the person you talk to, or "nobody".'),
        resolution=_text("How the problem was solved."),
    ),
    _tool(
        "get_ticket",
        "Read a whole ticket with its comments. Long texts are cut and say so.",
        ["ticket_id"],
        ticket_id=_TICKET_ID,
        from_character=_number("Where to start in the description, to read on where it was cut. Default 0."),
    ),
    _tool(
        "list_tickets",
        'List tickets by their fields: "what is new", "what is open", "how many". Returns the total number '
        "beside the tickets shown. It does not search in texts; for that use find_similar_tickets.",
        [],
        status=_choice([*STATUSES, "unresolved"], '"unresolved" is new, open and pending together.'),
        assignee=_text('User name, "me", or "nobody" for tickets that nobody works on.'),
        reporter=_text('User name, or "me".'),
        priority=_choice(PRIORITIES, "Only this priority."),
        category=_text('Name of an existing category, or "none".'),
        created_since=_text("Only tickets created since this date or time, ISO 8601, such as 2026-03-31."),
        order=_choice(ORDERS, "Default newest."),
        limit=_number(f"How many to show, at most {MAX_LISTED}. Default 10."),
    ),
    _tool(
        "add_comment",
        'Add a comment to a ticket, for example when the person has the same problem ("I have this too").',
        ["ticket_id", "body"],
        ticket_id=_TICKET_ID,
        body=_text("The comment, in the person's words and language."),
        internal=_flag("For colleagues only, not for the reporter. Default false."),
    ),
]

WRITING_TOOLS = ("create_ticket", "update_ticket", "add_comment")

SCHEMAS: dict[str, dict[str, Any]] = {tool["name"]: tool["input_schema"] for tool in DEFINITIONS}

# Inclusive bounds of the numbers.
BOUNDS: dict[str, dict[str, tuple[int, int]]] = {
    "find_similar_tickets": {"limit": (1, settings.SEARCH_MAX_LIMIT)},
    "update_ticket": {"ticket_id": (1, MAX_ID)},
    "get_ticket": {"ticket_id": (1, MAX_ID), "from_character": (0, 10_000_000)},
    "list_tickets": {"limit": (1, MAX_LISTED)},
    "add_comment": {"ticket_id": (1, MAX_ID)},
}
# Texts that must not be blank, and how many characters they may have.
LENGTHS: dict[str, dict[str, int]] = {
    "find_similar_tickets": {"query": MAX_TEXT},
    "create_ticket": {"title": 200, "description": MAX_TEXT, "category": 80},
    "update_ticket": {
        "title": 200,
        "description": MAX_TEXT,
        "resolution": MAX_TEXT,
        "category": 80,
        "assignee": 150,
    },
    "list_tickets": {"category": 80, "assignee": 150, "reporter": 150, "created_since": 40},
    "add_comment": {"body": MAX_TEXT},
}
MAY_BE_BLANK = {
    ("create_ticket", "description"),
    ("update_ticket", "description"),
    ("update_ticket", "resolution"),
}
