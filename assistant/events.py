"""What a running turn tells whoever listens. Sentences are lazily translated: render them in the person's
language.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise as Sentence

    from retrieval.results import SearchOutcome


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn_id: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of visible text, raw Markdown as the model wrote it: escape it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    tool_use_id: str
    name: str
    input: dict[str, Any]
    label: Sentence  # what happens now, for the person: "Searching existing tickets"


@dataclass(frozen=True, slots=True)
class ToolFinished:
    tool_use_id: str
    name: str
    is_error: bool
    summary: Sentence  # one line for the person
    duration_ms: int
    call_id: int  # the ToolCall row, stored before this event is sent


@dataclass(frozen=True, slots=True)
class CandidatesFound:
    """A search has ended, with any of its three outcomes; for `found` there are cards to show."""

    tool_use_id: str
    outcome: SearchOutcome


@dataclass(frozen=True, slots=True)
class Retrying:
    """The model could not be reached before the first visible text; the next try follows in `seconds`."""

    reason: Sentence
    seconds: float
    attempt: int  # the try that failed, from 1


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the person should know, such as earlier messages that no longer fit."""

    text: Sentence


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing has happened for a while; said so that nobody on the way takes the line for dead."""


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """Always the last event. Everything is stored by now: the page can render the turn from the database."""

    turn_id: int
    status: str  # done, failed, interrupted
    stop_reason: str
    sentence: Sentence = field(default="")  # what to tell the person when not done
    next_turn_id: int | None = None  # queued turn for messages that waited: open its stream


Event = (
    TurnStarted
    | TextDelta
    | ToolStarted
    | ToolFinished
    | CandidatesFound
    | Retrying
    | Notice
    | Silence
    | TurnFinished
)
