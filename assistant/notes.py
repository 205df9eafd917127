"""What the model must know beside the person's own words. English; sent as blocks of a user message.

Notes are in <note> tags so that the system prompt can say what they are; whatever they quote is a JSON
string.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.models import ToolCall, Turn

# How much of a broken answer the model reads again.
PARTIAL_SHOWN = 2000


def note(text: str) -> str:
    return f"<note>{text}</note>"


def quoted(text: str, limit: int = PARTIAL_SHOWN) -> str:
    """`text` as a JSON string, cut visibly, that cannot close the note's tag."""
    shown = text[:limit]
    more = f" (first {limit} of {len(text)} characters)" if len(text) > limit else ""
    return json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c") + more


def context(now: datetime, name: str, username: str) -> str:
    """When and with whom this turn takes place; not in the system prompt, which must not change."""
    return note(
        f"It is {now:%A, %Y-%m-%d %H:%M %Z}. The person is {quoted(name)} (user name {quoted(username)})."
    )


def left_out(count: int) -> str:
    return note(
        f"{count} earlier messages of this conversation no longer fit and are left out here. "
        "If the person refers to them, say that you cannot see them any more and ask."
    )


def broken_off(turn: Turn) -> str:
    """Why the answer before this message is missing or incomplete."""
    reasons = {
        "stopped": "The person stopped your previous answer.",
        "disconnected": "The connection to the person was closed before your previous answer was finished.",
        "cut": "Your previous answer was cut off at the output limit.",
        "refusal": "Your previous answer was declined by a safety filter.",
    }
    reason = reasons.get(turn.error, "Your previous answer broke off because of a technical fault.")
    if not turn.partial.strip():
        return note(reason)
    return note(f"{reason} It is incomplete; the person has seen this much of it: {quoted(turn.partial)}")


def undone(call: ToolCall) -> str:
    fields = ", ".join(change["field"] for change in call.changes)
    return note(
        f"The person has taken back your last change of ticket {call.ticket_id} ({fields}); it is as before."
    )


def judged(ticket_id: int, judgement: str) -> str:
    said = {
        "same": (
            f'The person pressed "That\'s it, me too" for ticket {ticket_id}. A comment was added to it on '
            "the person's behalf; do not add another."
        ),
        "different": f'The person pressed "Not the same" for ticket {ticket_id}: it is a different problem.',
        "related": f"The person marked ticket {ticket_id} as related, but not the same problem.",
    }
    return note(said[judgement])


EMPTY_ANSWER = note("Your last message had no visible text. Answer the person now.")
