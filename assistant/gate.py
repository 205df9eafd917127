"""Search before you create: enforced where tickets are written, not only asked for in the prompt.

A creation needs two things.

1. A receipt: a search in this conversation since the last creation in it. Every likely duplicate that those
   searches showed must have been answered.
2. The ticket's own text is searched as well, just before it is created. This is how the receipt is tied to
   the problem: whoever searches for something else and then creates is stopped here, because a likely
   duplicate of the new ticket that the person was never shown is shown now, and the creation waits for their
   answer.

A likely duplicate is *answered* when the person has pressed "Not the same" on it, or has written a message
after it was shown. A message that was sent earlier, or waited in the queue, does not count: it cannot refer
to what the person had not seen. If the search is unavailable there is nothing to wait for: the ticket is
created and marked, so that it is checked as soon as its vector exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from assistant.models import Conversation, ConversationTicket, Message, ToolCall
from assistant.tools.errors import ToolError
from assistant.tools.results import hit_for_model
from retrieval.results import Band, Hit, Outcome, SearchOutcome
from tickets.models import Ticket

SEARCH_TOOL = "find_similar_tickets"
NO_RECEIPT = (
    "Not created: nobody has looked for duplicates of this problem yet. Call find_similar_tickets with the "
    "problem "
    "in the person's words, then decide."
)
UNANSWERED = (
    "Not created: there are likely duplicates ({tickets}) that the person has not answered yet. Name them, "
    "ask "
    "whether one of them is the same problem, and end your answer. Create the ticket only after they say "
    "that it is "
    "a different problem."
)


class GateClosed(ToolError):
    """The creation has to wait. `shown` are likely duplicates that the person sees with this refusal."""

    def __init__(self, sentence: str, code: str, shown: SearchOutcome | None = None) -> None:
        data: dict[str, Any] = {"refused": True}
        if shown is not None:
            data["tickets"] = [hit_for_model(hit) for hit in shown.hits]
        super().__init__(sentence, code, **data)
        self.shown = shown


def check(conversation: Conversation, own_search: SearchOutcome) -> str:
    """The `duplicate_check` the new ticket gets, or `GateClosed`. `own_search` searched for the ticket's own
    text.
    """
    receipts = receipts_of(conversation)
    if not any(call.name == SEARCH_TOOL and not call.is_error for call in receipts):
        raise GateClosed(NO_RECEIPT, "no_search")
    _check_answers(conversation, receipts, own_search)
    if own_search.outcome == Outcome.UNAVAILABLE:
        return Ticket.DuplicateCheck.UNAVAILABLE
    return Ticket.DuplicateCheck.SEARCHED


def _check_answers(
    conversation: Conversation, receipts: Iterable[ToolCall], own_search: SearchOutcome
) -> None:
    shown = shown_at(receipts)
    answers = _Answers(conversation)
    own = [hit for hit in own_search.hits if hit.band == Band.LIKELY]
    new = [hit for hit in own if hit.ticket.pk not in shown and not answers.turned_down(hit.ticket.pk)]
    suspects = likely_in(receipts) | {hit.ticket.pk for hit in own if hit.ticket.pk in shown}
    open_ids = sorted(pk for pk in suspects if not answers.after(pk, shown[pk]))
    if new or open_ids:
        raise GateClosed(_unanswered(open_ids, new), "unanswered", own_search if new else None)


def receipts_of(conversation: Conversation) -> list[ToolCall]:
    """The tool calls since the last creation of a ticket in this conversation, oldest first."""
    calls = conversation.tool_calls.order_by("id")
    last = calls.filter(creates=True).order_by("-id").values_list("id", flat=True).first()
    return list(calls.filter(id__gt=last) if last else calls)


def shown_at(calls: Iterable[ToolCall]) -> dict[int, datetime]:
    """When the person was first shown each candidate, likely or merely possible."""
    shown: dict[int, datetime] = {}
    for call in calls:
        for hit in call.hits:
            shown.setdefault(hit["ticket"], call.created_at)
    return shown


def likely_in(calls: Iterable[ToolCall]) -> set[int]:
    return {hit["ticket"] for call in calls for hit in call.hits if hit["band"] == Band.LIKELY}


class _Answers:
    """What the person has said about the candidates."""

    def __init__(self, conversation: Conversation) -> None:
        messages = Message.objects.filter(conversation=conversation, from_person=True, turn__isnull=False)
        self.last_message = messages.order_by("-created_at").values_list("created_at", flat=True).first()
        judged = ConversationTicket.objects.filter(conversation=conversation).exclude(judgement="")
        self.judged = {known.ticket_id: known for known in judged}

    def turned_down(self, ticket_id: int) -> bool:
        known = self.judged.get(ticket_id)
        return known is not None and known.judgement != ConversationTicket.Judgement.SAME

    def after(self, ticket_id: int, shown: datetime) -> bool:
        """Whether the person has answered. "That's it, me too" speaks against a new ticket until they write
        again.
        """
        if self.turned_down(ticket_id):
            return True
        known = self.judged.get(ticket_id)
        since = max(shown, known.judged_at) if known and known.judged_at else shown
        return self.last_message is not None and self.last_message > since


def _unanswered(open_ids: Iterable[int], new: Iterable[Hit]) -> str:
    ids = [*open_ids, *(hit.ticket.pk for hit in new)]
    return UNANSWERED.format(tickets=", ".join(f"#{pk}" for pk in ids))
