"""What a person does to a conversation: ask, stop, retry, continue, undo. All check who owns it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.text import Truncator, format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from assistant import limits, notes, running, store
from assistant.faults import NOT_TO_BE_RETRIED
from assistant.models import Conversation, Message, ToolCall, Turn
from assistant.numbers import lazy_grouped
from assistant.refusals import Refused
from assistant.store import close_abandoned_turns
from assistant.tools.changes import values_before
from tickets import permissions
from tickets.models import StaleTicket, Ticket, Via
from tickets.text import clean_text, is_blank

__all__ = [
    "Posted",
    "Refused",
    "close_abandoned_turns",
    "continue_turn",
    "post_message",
    "rate_turn",
    "retry_turn",
    "start_conversation",
    "stop_turn",
    "undo_last_change",
]

MAX_CLIENT_KEY = 64


@dataclass(frozen=True, slots=True)
class Posted:
    """Where a message went: `turn` answers it now, or is the running turn it waits for (`waiting`)."""

    turn: Turn
    message: Message
    waiting: bool
    duplicate: bool


def start_conversation(user: User) -> Conversation:
    return Conversation.objects.create(user=user)


@transaction.atomic
def post_message(*, conversation: Conversation, user: User, text: str, client_key: str) -> Posted:
    """Store what the person wrote and say which turn answers it.

    `client_key` identifies the submit: the same key again changes nothing (double click, resend).
    Raises `Refused` for an empty or too long message and for a limit.
    """
    _lock_limits(user)
    conversation = locked(conversation, user)
    known = Message.objects.filter(conversation=conversation, client_key=client_key).first()
    if known:
        return _posted_before(known)
    text = acceptable_text(text)
    limits.check_messages_per_minute(user)
    active = store.active_turn(conversation)
    if active is None:
        limits.check_concurrent_turns(user)
        limits.check_daily_tokens(user)
    message = _add_message(conversation, text, client_key)
    if active and active.status == Turn.Status.RUNNING:
        return Posted(turn=active, message=message, waiting=True, duplicate=False)
    turn = store.queue_waiting(conversation, active)
    assert turn is not None  # it answers this very message
    return Posted(turn=turn, message=message, waiting=False, duplicate=False)


def acceptable_text(text: str) -> str:
    """The message without what no database can hold, or `Refused`. Nothing is cut."""
    text = clean_text(text).strip()
    if is_blank(text):
        raise Refused(_("The message is empty."))
    if len(text) > limits.MAX_MESSAGE_CHARACTERS:
        raise Refused(
            format_lazy(
                _("The message has {length} characters; at most {limit} can be sent. Nothing was sent."),
                length=lazy_grouped(len(text)),
                limit=lazy_grouped(limits.MAX_MESSAGE_CHARACTERS),
            )
        )
    return text


@transaction.atomic
def stop_turn(turn: Turn, user: User) -> Turn:
    """End the turn now: no further tool runs, what was said stays, marked as incomplete. Idempotent."""
    turn = _locked_turn(turn, user)
    if turn.is_active:
        store.close(turn, status=Turn.Status.INTERRUPTED, error="stopped")
        transaction.on_commit(lambda: running.cancel(turn.pk))
    return turn


@transaction.atomic
def retry_turn(turn: Turn, user: User) -> Turn:
    """A new turn that goes on after the finished steps of a broken one, so that nothing is written twice."""
    _lock_limits(user)
    turn = _locked_turn(turn, user)
    again = Turn.objects.filter(retry_of=turn).first()
    if again:
        return again
    _check_can_retry(turn)
    limits.check_concurrent_turns(user)
    limits.check_daily_tokens(user)
    return store.queue(turn.conversation, question=turn.question, retry_of=turn)


def continue_turn(turn: Turn, user: User) -> Turn:
    """Let the model go on with an answer that was cut at its maximum length."""
    turn = Turn.objects.owned_by(user).select_related("conversation").get(pk=turn.pk)
    if not turn.can_continue:
        raise Refused(_("This answer is not one that was cut off, so it cannot be continued."))
    posted = post_message(
        conversation=turn.conversation,
        user=user,
        text=gettext("Please continue where you stopped."),
        client_key=f"continue-{turn.pk}",
    )
    return posted.turn


@transaction.atomic
def undo_last_change(turn: Turn, user: User) -> ToolCall:
    """Take back the last change of a ticket in this turn, unless the ticket has changed since."""
    turn = _locked_turn(turn, user)
    call = turn.tool_calls.filter(is_error=False).exclude(changes=[]).last()
    if call is None:
        raise Refused(_("There is no change in this answer that could be undone."))
    if call.undone_at is None:
        _undo(call, user)
    return call


def _undo(call: ToolCall, user: User) -> None:
    ticket = Ticket.objects.visible_to(user).filter(pk=call.ticket_id or 0).first()
    if ticket is None or not permissions.may_change(user):
        raise Refused(_("You may not change this ticket any more."))
    try:
        ticket.change(
            by=user, via=Via.CHAT, expected_version=call.version_after, **values_before(call.changes)
        )
    except StaleTicket as stale:
        raise Refused(
            format_lazy(
                _("Ticket #{id} was changed by somebody else in the meantime, so nothing was undone."),
                id=stale.current.pk,
            )
        ) from None
    except (ValidationError, ObjectDoesNotExist):
        raise Refused(_("What was there before is no longer possible, so nothing was undone.")) from None
    call.undone_at = timezone.now()
    call.save(update_fields=["undone_at"])
    store.add_note(call.conversation, notes.undone(call))


@transaction.atomic
def rate_turn(turn: Turn, user: User, helpful: bool, feedback: str = "") -> None:
    """Store whether the answer helped, with an optional word (at most 500 characters, or `Refused`)."""
    feedback = clean_text(feedback).strip()
    if len(feedback) > 500:
        raise Refused(_("The comment may have at most 500 characters."))
    turn = _locked_turn(turn, user)
    turn.helpful, turn.feedback = helpful, feedback
    turn.save(update_fields=["helpful", "feedback"])


def _lock_limits(user: User) -> None:
    """Whoever posts in several conversations at once passes the limits one post after the other."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)


def locked(conversation: Conversation, user: User) -> Conversation:
    return Conversation.objects.owned_by(user).select_for_update(no_key=True).get(pk=conversation.pk)


def _locked_turn(turn: Turn, user: User) -> Turn:
    """The turn as it is now, with its conversation locked, which is what every change of a turn goes by."""
    turn = Turn.objects.owned_by(user).get(pk=turn.pk)
    return store.lock_turn(turn.pk)


def _posted_before(message: Message) -> Posted:
    turns = message.conversation.turns
    turn = message.turn or turns.active().first() or turns.latest("id")
    return Posted(turn=turn, message=message, waiting=message.turn is None, duplicate=True)


def _add_message(conversation: Conversation, text: str, client_key: str) -> Message:
    if not conversation.title:
        conversation.title = Truncator(" ".join(text.split())).chars(120)
    conversation.updated_at = timezone.now()
    conversation.save(update_fields=["title", "updated_at"])
    return Message.objects.create(
        conversation=conversation,
        role=Message.Role.USER,
        content=[{"type": "text", "text": text}],
        from_person=True,
        client_key=client_key,
    )


def _check_can_retry(turn: Turn) -> None:
    if not turn.is_incomplete or turn.error in NOT_TO_BE_RETRIED:
        raise Refused(_("Only an answer that failed or was interrupted can be tried again."))
    if turn.conversation.turns.filter(pk__gt=turn.pk).exists():
        raise Refused(_("There is a newer message already, so this answer cannot be tried again."))
