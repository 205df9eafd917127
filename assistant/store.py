"""What the loop reads and writes, as short synchronous transactions. Every change of a turn locks its conversation."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from assistant.models import Conversation, Message, Turn


def lock_turn(turn_id: int) -> Turn:
    """The turn as it is now, with its conversation locked: the order of all changes of a conversation."""
    conversation_id = Turn.objects.values_list("conversation_id", flat=True).get(pk=turn_id)
    conversation = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
    turn = Turn.objects.get(pk=turn_id)
    turn.conversation = conversation
    return turn


def queue(conversation: Conversation, *, question: str, retry_of: Turn | None = None) -> Turn:
    return Turn.objects.create(conversation=conversation, question=question, retry_of=retry_of)


def queue_waiting(conversation: Conversation) -> Turn:
    """The queued turn that answers all messages that wait, created if need be. Needs the conversation's lock."""
    turn = conversation.turns.filter(status=Turn.Status.QUEUED).first()
    turn = turn or queue(conversation, question="")
    conversation.messages.filter(turn=None).update(turn=turn)
    asked = turn.messages.filter(from_person=True)
    turn.question = "\n\n".join(message.text for message in asked)
    turn.save(update_fields=["question"])
    return turn


def add_note(conversation: Conversation, note: str) -> Message:
    """Something the model reads together with the person's next message."""
    content = [{"type": "text", "text": note}]
    return Message.objects.create(conversation=conversation, role=Message.Role.USER, content=content)


def close(turn: Turn, *, status: str, error: str = "", params: dict[str, Any] | None = None) -> Turn | None:
    """End an active turn. Returns the turn that was queued for messages that waited for the end, if any."""
    turn.status, turn.error, turn.error_params = status, error, params or {}
    turn.finished_at = timezone.now()
    turn.save(update_fields=["status", "error", "error_params", "finished_at"])
    waiting = turn.conversation.messages.filter(turn=None, from_person=True)
    return queue_waiting(turn.conversation) if waiting.exists() else None
