"""What a tool call leaves: the JSON the model reads, and what the conversation remembers of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from assistant.tools.errors import ToolError
from retrieval.results import Hit, SearchOutcome
from tickets.models import Ticket

# Characters of JSON one call may return; a long ticket is read in several calls.
RESULT_BUDGET = 24_000
DESCRIPTION_SHOWN = 8_000
COMMENT_SHOWN = 1_500
RESOLUTION_SHOWN = 600
PASSAGE_SHOWN = 300

ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{}|]+", re.IGNORECASE)
TRAILING = ".,;:!?)]*_~"
MAX_ADDRESSES = 200


@dataclass(slots=True)
class Seen:
    """A ticket as the model has just read it."""

    version: int
    addresses: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Result:
    """`data` becomes the tool result; the rest becomes columns of the `ToolCall`."""

    data: dict[str, Any]
    is_error: bool = False
    error: str = ""
    ticket: Ticket | None = None
    creates: bool = False
    search: SearchOutcome | None = None  # shown to the person as candidate cards
    changes: list[dict[str, Any]] = field(default_factory=list)
    version_after: int | None = None
    seen: dict[int, Seen] = field(default_factory=dict)

    @property
    def content(self) -> str:
        return json.dumps(self.data, ensure_ascii=False)


def failure(error: ToolError) -> Result:
    return Result({"error": error.sentence, **error.data}, is_error=True, error=error.code)


def cut(text: str, limit: int, how_to_get_it: str) -> str:
    """`text`, or its first `limit` characters with a remark how much is missing and how to get it."""
    if len(text) <= limit:
        return text
    return (
        f"{text[:limit]} […cut: {len(text) - limit} of {len(text)} characters are missing; {how_to_get_it}]"
    )


def addresses_in(*texts: str) -> set[str]:
    """The web addresses that stand in these texts, as written, without punctuation that only follows them."""
    found = (match.rstrip(TRAILING) for text in texts for match in ADDRESS.findall(text))
    return set(list(dict.fromkeys(found))[:MAX_ADDRESSES])


def seen(ticket: Ticket, *more_texts: str) -> Seen:
    return Seen(
        ticket.version, addresses_in(ticket.title, ticket.description, ticket.resolution, *more_texts)
    )


def age_days(ticket: Ticket) -> int:
    return (timezone.now() - ticket.created_at).days


def hit_for_model(hit: Hit) -> dict[str, Any]:
    ticket = hit.ticket
    data: dict[str, Any] = {
        "id": ticket.pk,
        "title": ticket.title,
        "status": ticket.status,
        "age_days": age_days(ticket),
        "similarity": None if hit.similarity is None else round(hit.similarity, 2),
        "band": str(hit.band),
        "matched": list(hit.matched),
        "passage": cut(hit.passage, PASSAGE_SHOWN, "call get_ticket"),
    }
    if ticket.is_resolved and ticket.resolution:
        data["resolution"] = cut(ticket.resolution, RESOLUTION_SHOWN, "call get_ticket")
    return data


def hit_for_record(hit: Hit) -> dict[str, Any]:
    """For `ToolCall.hits`, from which the page draws the candidate cards."""
    return {
        "ticket": hit.ticket.pk,
        "rank": hit.rank,
        "band": str(hit.band),
        "similarity": hit.similarity,
        "matched": list(hit.matched),
        "identifiers": list(hit.identifiers),
        "passage": hit.passage[:1000],
    }


def seen_hits(hits: Iterable[Hit]) -> dict[int, Seen]:
    return {hit.ticket.pk: seen(hit.ticket) for hit in hits}
