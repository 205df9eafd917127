"""What each reason for which the model stopped means for the turn. Only `end_turn` is a whole answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assistant.models import Turn

if TYPE_CHECKING:
    from assistant.calls import Reply


@dataclass(frozen=True, slots=True)
class Ending:
    """How the turn ends; `error` is a code of `faults.SENTENCES`, empty for a whole answer."""

    status: str
    error: str = ""
    params: dict[str, Any] = field(default_factory=dict)


DONE = Ending(Turn.Status.DONE)
BY_REASON = {
    "end_turn": DONE,
    "max_tokens": Ending(Turn.Status.INTERRUPTED, "cut"),
    "refusal": Ending(Turn.Status.FAILED, "refusal"),
    "model_context_window_exceeded": Ending(Turn.Status.INTERRUPTED, "context_full"),
    "stop_sequence": Ending(Turn.Status.INTERRUPTED, "stop_sequence"),
}


def ending_of(reply: Reply) -> Ending:
    known = BY_REASON.get(reply.stop_reason)
    if known is not None:
        return known
    return Ending(Turn.Status.INTERRUPTED, "unknown_stop", {"stop_reason": reply.stop_reason[:60] or "?"})
