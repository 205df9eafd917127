"""What the loop reads and writes, as short synchronous transactions. Every change of a turn locks its
conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from assistant import grounding, limits, notes
from assistant.history import Block, History, Row, rows_of
from assistant.models import Conversation, ConversationTicket, Message, ToolCall, Turn
from assistant.record import Record
from assistant.refusals import Refused
from assistant.tools.definitions import WRITING_TOOLS
from assistant.tools.execution import Call
from assistant.tools.results import Result, Seen, hit_for_record
from assistant.tools.scope import Scope
from tickets.text import clean_text


class TurnClosed(Exception):
    """The turn was ended from outside (stopped, or taken for dead): nothing more may be written for it."""


@dataclass(slots=True)
class Claim:
    """A turn that this process answers now, with all that the loop needs to know."""

    turn: Turn
    user: User
    history: History
    used_ids: set[str] = field(default_factory=set)  # tool_use ids that have run in this conversation


def lock_turn(turn_id: int) -> Turn:
    """The turn as it is now, with its conversation locked: the order of all changes of a conversation."""
    conversations = Conversation.objects.select_for_update(of=("self",), no_key=True).select_related("user")
    conversation = conversations.filter(turns=turn_id).first()
    if conversation is None:
        raise Turn.DoesNotExist
    turn = Turn.objects.get(pk=turn_id)  # after the lock, and not joined to it: as it is now
    turn.conversation = conversation
    return turn


def queue(conversation: Conversation, *, question: str, retry_of: Turn | None = None) -> Turn:
    return Turn.objects.create(conversation=conversation, question=question, retry_of=retry_of)


def active_turn(conversation: Conversation) -> Turn | None:
    """The turn that waits or is being answered. One whose process has died is closed first."""
    turn = conversation.turns.active().first()
    if turn and turn.is_abandoned and _close_abandoned(turn.pk):
        return conversation.turns.active().first()
    return turn


def queue_waiting(conversation: Conversation, queued: Turn | None = None) -> Turn | None:
    """The queued turn that answers all messages that wait: `queued`, or a new one. None if none waits.

    Needs the lock.
    """
    waiting = conversation.messages.filter(turn=None, from_person=True)
    if not (asked := [message.text for message in waiting]):
        return queued
    if queued is None:
        queued = queue(conversation, question="\n\n".join(asked))
    else:
        queued.question = "\n\n".join([queued.question, *asked])
        queued.save(update_fields=["question"])
    conversation.messages.filter(turn=None).update(turn=queued)
    return queued


def add_note(conversation: Conversation, note: str, turn: Turn | None = None) -> Message:
    """Something the model reads together with the person's next message."""
    content = [{"type": "text", "text": note}]
    return Message.objects.create(
        conversation=conversation, turn=turn, role=Message.Role.USER, content=content
    )


def close(turn: Turn, *, status: str, error: str = "", params: dict[str, Any] | None = None) -> Turn | None:
    """End an active turn. Returns the turn that was queued for messages that waited for the end, if any."""
    _end(turn, status, error, params or {})
    turn.save(update_fields=["status", "error", "error_params", "finished_at"])
    return queue_waiting(turn.conversation)


def _end(turn: Turn, status: str, error: str, params: dict[str, Any]) -> None:
    turn.status, turn.error, turn.error_params = status, error, params
    turn.finished_at = timezone.now()


# -- the beginning of a turn -------------------------------------------------------------------------------


@transaction.atomic
def claim(turn_id: int, model: str) -> Claim | None:
    """Take a queued turn, for exactly one of all who ask. None if it is not queued (any more)."""
    turn = lock_turn(turn_id)
    if turn.status != Turn.Status.QUEUED:
        return None
    user = turn.conversation.user
    try:
        limits.check_daily_tokens(user)
    except Refused as refused:
        close(turn, status=Turn.Status.FAILED, error="daily_limit", params=refused.params)
        return None
    turn.status, turn.model = Turn.Status.RUNNING, model
    turn.started_at = turn.heartbeat_at = timezone.now()
    turn.save(update_fields=["status", "model", "started_at", "heartbeat_at"])
    turns = _turns_until(turn)
    add_note(turn.conversation, _opening_note(turn, user, turns), turn)
    claimed = Claim(turn, user, load_history(turn, turns))
    if len(turns) > 1:  # in the first turn there are none yet
        claimed.used_ids.update(turn.conversation.tool_calls.values_list("tool_use_id", flat=True))
    return claimed


def _turns_until(turn: Turn) -> list[Turn]:
    """The turns of the conversation up to this one, with what the history needs of them."""
    turns = turn.conversation.turns.filter(pk__lte=turn.pk)
    return list(turns.only("conversation_id", "retry_of_id", "status", "error", "error_params"))


def _opening_note(turn: Turn, user: User, turns: Sequence[Turn]) -> str:
    now = timezone.localtime(turn.started_at)
    opening = notes.context(now, user.get_full_name() or user.get_username(), user.get_username())
    before = turns[-2] if len(turns) > 1 else None
    return f"{notes.broken_off(before)}\n{opening}" if before and before.is_incomplete else opening


def load_history(turn: Turn, turns: Sequence[Turn] | None = None) -> History:
    """All that is sent for this turn: the turns from the first one that fits, in their order."""
    conversation = turn.conversation
    turns = [one for one in turns or _turns_until(turn) if one.pk >= conversation.first_sent_turn]
    messages = Message.objects.filter(turn__in=turns).order_by("turn_id", "id")
    rows = rows_of(_without_refused(messages, turns), _groups(turns))
    return History(rows, conversation.thinking_from, _left_out(conversation))


def _groups(turns: Iterable[Turn]) -> dict[int, int]:
    """Retries belong to the turn they repeat: they have no message of the person of their own."""
    groups: dict[int, int] = {}
    for turn in turns:
        groups[turn.pk] = groups.get(turn.retry_of_id, turn.pk) if turn.retry_of_id else turn.pk
    return groups


def _without_refused(messages: Iterable[Message], turns: Iterable[Turn]) -> list[Message]:
    """Without the messages that the model declined to answer: sent again, they would be declined again."""
    kept = list(messages)
    answered = {message.turn_id for message in kept if message.role == Message.Role.ASSISTANT}
    declined = {turn.pk for turn in turns if turn.error == "refusal"} - answered
    return [message for message in kept if not (message.turn_id in declined and message.from_person)]


def _left_out(conversation: Conversation) -> int:
    if not conversation.first_sent_turn:
        return 0
    older = conversation.messages.filter(turn_id__lt=conversation.first_sent_turn)
    return older.filter(Q(from_person=True) | Q(role=Message.Role.ASSISTANT)).count()


@transaction.atomic
def shorten(turn_id: int, first_sent_turn: int) -> History:
    """Leave out all turns before this one from now on, and what was thought until now."""
    turn = lock_turn(turn_id)
    last = (
        Message.objects.filter(conversation=turn.conversation).order_by("-id").values_list("id", flat=True)[0]
    )
    conversation = turn.conversation
    conversation.first_sent_turn, conversation.thinking_from = first_sent_turn, last + 1
    conversation.save(update_fields=["first_sent_turn", "thinking_from"])
    return load_history(turn)


@transaction.atomic
def drop_thinking(turn_id: int) -> History:
    """Send nothing that was thought until now: the API says that it does not belong to this history."""
    turn = lock_turn(turn_id)
    last = (
        Message.objects.filter(conversation=turn.conversation).order_by("-id").values_list("id", flat=True)[0]
    )
    turn.conversation.thinking_from = last + 1
    turn.conversation.save(update_fields=["thinking_from"])
    return load_history(turn)


# -- a step of a turn --------------------------------------------------------------------------------------


@transaction.atomic
def commit_step(
    turn_id: int, content: list[Block], calls: Sequence[Call]
) -> tuple[list[Row], list[ToolCall]]:
    """The assistant's message, what its tools write, and their results: all or nothing.

    Raises `TurnClosed`, with nothing written, if the turn was stopped in the meantime.
    """
    turn = _running(turn_id)
    scope = Scope(turn.conversation.user, turn.conversation, turn)
    stored = [run_call(scope, call) for call in calls]
    messages = [(Message.Role.ASSISTANT, content)]
    if stored:
        messages.append((Message.Role.USER, [_result_block(call) for call in stored]))
    return _add(turn, *messages), stored


def add_nudge(turn_id: int, note: str) -> Row:
    """A note of ours in the middle of a turn."""
    with transaction.atomic():
        turn = _running(turn_id)
        return _add(turn, (Message.Role.USER, [{"type": "text", "text": note}]))[0]


def _running(turn_id: int) -> Turn:
    turn = lock_turn(turn_id)
    if turn.status != Turn.Status.RUNNING:
        raise TurnClosed
    return turn


def _add(turn: Turn, *messages: tuple[str, list[Block]]) -> list[Row]:
    """Store messages by role and content, in their order."""
    added = Message.objects.bulk_create(
        Message(conversation=turn.conversation, turn=turn, role=role, content=content)
        for role, content in messages
    )
    return rows_of(added, {turn.pk: _root(turn)})


def _root(turn: Turn) -> int:
    while turn.retry_of is not None:
        turn = turn.retry_of
    return turn.pk


def run_call(scope: Scope, call: Call) -> ToolCall:
    """What one tool reads or writes, with its record. Needs the transaction of the step."""
    result = call.execute(scope)
    stored = ToolCall.objects.create(
        conversation=scope.conversation,
        turn=scope.turn,
        tool_use_id=call.tool_use_id,
        name=call.name[:100],
        input=call.input,
        result=result.content,
        is_error=result.is_error,
        error=result.error,
        duration_ms=round(call.milliseconds),
        ticket=result.ticket,
        creates=result.creates,
        changes=result.changes,
        version_after=result.version_after,
        **_search_fields(result),
    )
    _remember(scope.conversation, result.seen)
    return stored


def _written_in(conversation: Conversation) -> str:
    """Everything that the model has written into tickets in this conversation."""
    inputs = conversation.tool_calls.filter(name__in=WRITING_TOOLS).values_list("input", flat=True)
    return "\n".join(
        clean_text(text)
        for given in inputs
        if isinstance(given, dict)
        for text in given.values()
        if isinstance(text, str)
    )


def _search_fields(result: Result) -> dict[str, Any]:
    if result.search is None:
        return {}
    return {
        "search_log_id": result.search.log_id,
        "outcome": str(result.search.outcome),
        "reason": result.search.reason[:300],
        "hits": [hit_for_record(hit) for hit in result.search.hits],
    }


def _remember(conversation: Conversation, seen: dict[int, Seen]) -> None:
    """Which tickets the model has read, in which version, and the addresses in their texts.

    An address that the model wrote into a ticket itself is none that it has found there: otherwise writing it
    down first would get any address past the link guard.
    """
    if not seen:
        return
    addresses = _addresses(conversation, seen)
    ConversationTicket.objects.bulk_create(
        [
            ConversationTicket(
                conversation=conversation,
                ticket_id=ticket_id,
                version_seen=look.version,
                addresses=addresses.get(ticket_id, []),
            )
            for ticket_id, look in sorted(seen.items())
        ],
        update_conflicts=True,
        unique_fields=["conversation", "ticket"],
        update_fields=["version_seen", "addresses"] if addresses else ["version_seen"],
    )


def _addresses(conversation: Conversation, seen: dict[int, Seen]) -> dict[int, list[str]]:
    """By ticket, the addresses known before and those seen now; empty if there is none among these."""
    if not any(look.addresses for look in seen.values()):
        return {}
    written = _written_in(conversation)
    known = dict(conversation.known_tickets.filter(ticket__in=seen).values_list("ticket_id", "addresses"))
    return {
        ticket_id: sorted({*known.get(ticket_id, ()), *(one for one in look.addresses if one not in written)})
        for ticket_id, look in seen.items()
    }


def _result_block(call: ToolCall) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call.tool_use_id, "content": call.result}
    return {**block, "is_error": True} if call.is_error else block


def keep_alive(turn_id: int, partial: str) -> bool:
    """A sign of life, with the text so far in case there is no other. False: the turn has been ended."""
    running = Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING)
    return bool(running.update(heartbeat_at=timezone.now(), partial=partial))


# -- the end of a turn -------------------------------------------------------------------------------------


@transaction.atomic
def finish(turn_id: int, record: Record) -> tuple[Turn, Turn | None]:
    """Store what the turn was, with the message that ends it. Returns it with the turn that is queued next,
    if messages waited for its end.

    If it was stopped from outside, it stays what it was made then, and what was said stays a part of an
    answer; its record is completed all the same.
    """
    turn = lock_turn(turn_id)
    conversation, running = turn.conversation, turn.status == Turn.Status.RUNNING
    if running:
        _end(turn, record.status, record.error, record.error_params)
        if record.last_message:
            _add(turn, (Message.Role.ASSISTANT, record.last_message))
            record.keep_text(record.last_message)
    record.fill(turn)
    grounding.count(turn)
    turn.save()
    return turn, queue_waiting(conversation) if running else conversation.turns.active().first()


def look(turn_id: int) -> tuple[Turn, Turn | None]:
    """A turn as it is now, closed if its process has died, and the turn that is queued after it."""
    turn = Turn.objects.select_related("conversation").get(pk=turn_id)
    if turn.status == Turn.Status.RUNNING and close_abandoned_turns(turn.conversation):
        turn.refresh_from_db()
    return turn, turn.conversation.turns.filter(status=Turn.Status.QUEUED, pk__gt=turn.pk).first()


def close_abandoned_turns(conversation: Conversation | None = None) -> int:
    """Close running turns whose process died, everywhere or in one conversation. Returns how many."""
    abandoned = Turn.objects.abandoned()
    if conversation is not None:
        abandoned = abandoned.filter(conversation=conversation)
    return sum(_close_abandoned(pk) for pk in list(abandoned.values_list("pk", flat=True)))


@transaction.atomic
def _close_abandoned(turn_id: int) -> bool:
    turn = lock_turn(turn_id)
    if not Turn.objects.abandoned().filter(pk=turn_id).exists():  # it was closed, or is alive after all
        return False
    close(turn, status=Turn.Status.INTERRUPTED, error="abandoned")
    return True
