"""What an answer rests on: the tickets that tools returned, and which of them it uses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from assistant.models import ConversationTicket, ToolCall, Turn
from assistant.rendering import mentioned_tickets, render_markdown


def allowed_by(known: Iterable[ConversationTicket]) -> tuple[set[str], set[int]]:
    """The addresses and the tickets that answers may link to, from what the conversation's tools returned."""
    rows = list(known)
    return {address for row in rows for address in row.addresses}, {row.ticket_id for row in rows}


def count(turn: Turn) -> None:
    """Sources found and used, and links removed, for the turn's record."""
    text = f"{turn.answer}\n\n{turn.partial}".strip()
    links, known = allowed_by(turn.conversation.known_tickets.all())
    found, acted_on = sources(turn.tool_calls.all())
    turn.sources_found = len(found)
    turn.sources_used = len(found & (mentioned_tickets(text) | acted_on))
    turn.links_removed = render_markdown(text, links, known)[1]


def sources(calls: Any) -> tuple[set[int], set[int]]:
    """The tickets that these calls returned, and those among them that were changed or commented on."""
    found: set[int] = set()
    acted_on: set[int] = set()
    for call in calls:
        found |= returned_by(call)
        if call.name in ("update_ticket", "add_comment") and not call.is_error and call.ticket_id:
            acted_on.add(call.ticket_id)
    return found, acted_on


def returned_by(call: ToolCall) -> set[int]:
    """The tickets a call has read from the database, as opposed to written."""
    if call.name == "get_ticket":
        return {call.ticket_id} if call.ticket_id else set()
    if call.name == "list_tickets" and not call.is_error:
        return {row["id"] for row in json.loads(call.result)["tickets"]}
    return {hit["ticket"] for hit in call.hits}
