"""What a person says about the suggested tickets: "That's it, me too", "Not the same"."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone, translation
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from assistant import notes, store
from assistant.models import Conversation, ConversationTicket, ToolCall
from assistant.refusals import Refused
from assistant.services import MAX_CLIENT_KEY, locked, post_message
from assistant.tools.definitions import MAX_TEXT
from retrieval.models import Verdict
from retrieval.results import Band
from tickets import permissions
from tickets.language import detect_language
from tickets.models import Comment, Ticket, Via

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Judgement = ConversationTicket.Judgement


@dataclass(frozen=True, slots=True)
class VerdictResult:
    comment: Comment | None
    already: bool  # nothing new happened: the same button was pressed before


def judge(*, conversation: Conversation, user: User, candidates: Sequence[int], judgement: str) -> None:
    """Record the verdict on each candidate (ticket ids). "Not the same" is also posted as the person's answer
    if the assistant waits for one.

    Raises `Ticket.DoesNotExist` as `record_verdict` does, and `Refused` for a limit.
    """
    for candidate in candidates:
        record_verdict(conversation=conversation, user=user, candidate=candidate, judgement=judgement)
    if judgement == Judgement.DIFFERENT and _waits_for_answer(conversation, candidates):
        post_message(
            conversation=conversation,
            user=user,
            text=_not_these(conversation, candidates),
            client_key=f"different-{'-'.join(map(str, candidates))}"[:MAX_CLIENT_KEY],
        )


@transaction.atomic
def record_verdict(
    *, conversation: Conversation, user: User, candidate: Ticket | int, judgement: str
) -> VerdictResult:
    """What the person says about a suggested ticket. `same` adds their words to it as a comment, once.

    `different` counts as the person's answer to the gate, and the pair is not suggested again here.
    Raises `Ticket.DoesNotExist` for a ticket that was not suggested in this conversation or may not be seen.
    """
    conversation = locked(conversation, user)
    ticket = _suggested(conversation, user, candidate)
    known = ConversationTicket.objects.select_for_update(of=("self",)).get(
        conversation=conversation, ticket=ticket
    )
    judgement = Judgement(judgement)
    if known.judgement == judgement:
        return VerdictResult(comment=None, already=True)
    return VerdictResult(comment=_record(known, user, judgement), already=False)


def _record(known: ConversationTicket, user: User, judgement: str) -> Comment | None:
    search = _search_of(known)
    comment = _me_too(known, user, search) if judgement == Judgement.SAME else None
    known.judgement, known.judged_at = judgement, timezone.now()
    known.save(update_fields=["judgement", "judged_at"])
    Verdict.objects.create(
        search=search.search_log if search else None,
        candidate_id=known.ticket_id,
        judgement=judgement,
        by=user,
    )
    store.add_note(known.conversation, notes.judged(known.ticket_id, judgement))
    return comment


def _suggested(conversation: Conversation, user: User, candidate: Ticket | int) -> Ticket:
    pk = candidate.pk if isinstance(candidate, Ticket) else candidate
    return Ticket.objects.visible_to(user).get(
        pk=pk, pk__in=ConversationTicket.objects.filter(conversation=conversation).values("ticket")
    )


def _search_of(known: ConversationTicket) -> ToolCall | None:
    """The last search of the conversation that suggested this ticket."""
    searches = known.conversation.tool_calls.filter(hits__contains=[{"ticket": known.ticket_id}])
    return searches.select_related("turn", "search_log").order_by("-id").first()


# -- "That's it, me too" -----------------------------------------------------------------------------------


def _me_too(known: ConversationTicket, user: User, search: ToolCall | None) -> Comment | None:
    """The comment, or None if this person has pressed the button for this ticket before, wherever."""
    if not permissions.may_comment(user):
        raise Refused(_("You may not comment on tickets."))
    ticket = Ticket.objects.select_for_update(no_key=True).get(pk=known.ticket_id)
    if Verdict.objects.filter(candidate=ticket, by=user, judgement=Judgement.SAME, ticket=None).exists():
        return None
    words = _own_words(search) if search else ""
    with translation.override(_written_in(words)):
        body = "\n\n".join(filter(None, [_("I have this problem too."), words]))
    return ticket.add_comment(by=user, body=body, internal=False, via=Via.CHAT)


def _own_words(search: ToolCall) -> str:
    """How the person described the problem that was searched for, cut to what a comment may have.

    A creation searches in the middle of an answer to something else, such as a "no": its description repeats
    what the person had said.
    """
    described = search.input.get("description", "") if search.name == "create_ticket" else ""
    words = described or search.turn.question
    return words if len(words) <= MAX_TEXT else Truncator(words).chars(MAX_TEXT)


# -- "Not the same" ----------------------------------------------------------------------------------------


def _waits_for_answer(conversation: Conversation, candidates: Collection[int]) -> bool:
    """Whether "Not the same" answers the assistant's question for these candidates.

    It does if the last search showed them, that problem has no ticket yet, and no other likely candidate is
    left to be looked at. Otherwise the verdict is kept and nothing more: said as a message, it would be taken
    for the description of a new problem.
    """
    search = conversation.tool_calls.exclude(outcome="").order_by("-pk").first()
    if search is None or not _shows(search, candidates):
        return False
    return not _is_settled(search) and not _likely_ones_open(search)


def _shows(search: ToolCall, candidates: Collection[int]) -> bool:
    return {hit["ticket"] for hit in search.hits}.issuperset(candidates)


def _is_settled(search: ToolCall) -> bool:
    """Whether the problem that was searched for has found its ticket: an existing or a new one."""
    hits = [hit["ticket"] for hit in search.hits]
    known = search.conversation.known_tickets
    if known.filter(ticket__in=hits, judgement=Judgement.SAME, judged_at__gt=search.created_at).exists():
        return True
    later = search.conversation.tool_calls.filter(pk__gt=search.pk, is_error=False)
    return later.filter(Q(creates=True) | Q(name="add_comment")).exists()


def _likely_ones_open(search: ToolCall) -> bool:
    """Whether it still shows a likely candidate that nobody has judged."""
    likely = [hit["ticket"] for hit in search.hits if hit["band"] == Band.LIKELY]
    return search.conversation.known_tickets.filter(ticket__in=likely, judgement="").exists()


def _not_these(conversation: Conversation, candidates: Collection[int]) -> str:
    """What the button means as a message, in the language in which the person has been writing."""
    last = conversation.messages.filter(from_person=True).order_by("-pk").first()
    numbers = ", ".join(f"#{candidate}" for candidate in candidates)
    with translation.override(_written_in(last.text if last else "")):
        return _("No, that is a different problem, not %(numbers)s.") % {"numbers": numbers}


def _written_in(text: str) -> str:
    """The language of `text` if the product speaks it, else that of the page."""
    language = detect_language(text)
    return language if language in dict(settings.LANGUAGES) else translation.get_language()
