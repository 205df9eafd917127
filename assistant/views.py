"""The chat page and its fragments. Every address belongs to one conversation of one person; others get 404.

Page and fragment share their templates: `tail` answers with what the page does not show yet, and posting,
judging and continuing answer with the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from assistant import judging, loop, services, sse
from assistant.db import run_db
from assistant.models import Conversation, ConversationTicket, Message, Turn
from assistant.transcript import TurnView, load_transcript, load_turn
from retrieval.access import for_ticket_staff, person
from retrieval.state import search_state
from tickets.connections import release_connections

CONVERSATIONS_LISTED = 60


def owned(request: HttpRequest, conversation_id: int) -> Conversation:
    try:
        return Conversation.objects.owned_by(person(request)).get(pk=conversation_id)
    except Conversation.DoesNotExist:
        raise Http404 from None


def owned_turn(request: HttpRequest, conversation_id: int, turn_id: int) -> Turn:
    turns = Turn.objects.owned_by(person(request)).select_related("conversation")
    try:
        return turns.get(pk=turn_id, conversation_id=conversation_id)
    except Turn.DoesNotExist:
        raise Http404 from None


# --- pages ------------------------------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "POST"])
@for_ticket_staff
def index(request: HttpRequest) -> HttpResponse:
    """My conversations and a box, empty or with `?text=`; posting starts a conversation with its message."""
    if request.method == "POST":
        return _start(request)
    context = _frame(_listed(request)) | {"typed": request.GET.get("text", "")}
    return render(request, "assistant/chat.html", context)


@never_cache
@require_GET
@for_ticket_staff
def thread(request: HttpRequest, conversation_id: int) -> HttpResponse:
    listed = _listed(request)
    known = (conversation for conversation in listed if conversation.pk == conversation_id)
    conversation = next(known, None) or owned(request, conversation_id)
    views = load_transcript(conversation, person(request))
    if any(view.turn.is_abandoned for view in views):
        services.close_abandoned_turns(conversation)
        views = load_transcript(conversation, person(request))
    context = _frame(listed, conversation) | _tail_context(conversation, views)
    return render(request, "assistant/chat.html", context)


def _listed(request: HttpRequest) -> list[Conversation]:
    return list(Conversation.objects.owned_by(person(request))[:CONVERSATIONS_LISTED])


def _frame(listed: list[Conversation], conversation: Conversation | None = None) -> dict[str, Any]:
    """What stands around the thread: the list, the state of search and model, the box."""
    return {
        "section": "chat",
        "conversation": conversation,
        "conversations": listed,
        "rehearsal": settings.ASSISTANT_BACKEND == "rehearsal",
        "search_state": search_state(),
        "client_key": get_random_string(24),
    }


# --- fragments --------------------------------------------------------------------------------------------


@never_cache
@require_GET
@for_ticket_staff
def tail(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The turns after `?after=`, ready to be streamed, and the messages that wait."""
    conversation = owned(request, conversation_id)
    services.close_abandoned_turns(conversation)
    return _tail(request, conversation)


def _tail(request: HttpRequest, conversation: Conversation, **more: Any) -> HttpResponse:
    """The fragment for the page in front of the person, or the way back to the page without JavaScript."""
    if not request.headers.get("HX-Request"):
        return _back(conversation)
    user, after = person(request), _after(request)
    newer = conversation.turns.filter(pk__gt=after).select_related("conversation")
    views = [load_turn(turn, user) for turn in newer]
    # What the person has just done may take the offer to try again from the turn before. A mere look changes
    # nothing there, and must not replace a button that is being pressed.
    if request.method == "POST" and after:
        last = conversation.turns.filter(pk=after).select_related("conversation").first()
        if last and last.is_incomplete:
            more["outdated"] = load_turn(last, user)
    context = {"conversation": conversation} | _tail_context(conversation, views, after) | more
    return render(request, "assistant/_tail.html", context)


def _after(request: HttpRequest) -> int:
    sent = request.POST.get("after") or request.GET.get("after") or "0"
    return int(sent) if sent.isdecimal() and len(sent) < 19 else 0


def _tail_context(conversation: Conversation, views: list[TurnView], after: int = 0) -> dict[str, Any]:
    waiting = conversation.messages.filter(turn=None, from_person=True)
    return {
        "views": views,
        "waiting": [message.text for message in waiting],
        "after": max([after, *(view.turn.pk for view in views)]),
    }


def _back(conversation: Conversation) -> HttpResponseRedirect:
    response = HttpResponseRedirect(reverse("assistant:thread", args=[conversation.pk]) + "#tail")
    response.status_code = 303
    return response


def _refused(
    request: HttpRequest, refused: services.Refused, conversation: Conversation | None
) -> HttpResponse:
    """The sentence, and everything that was typed still in the box."""
    status = 429 if refused.until else 422
    if request.headers.get("HX-Request"):
        return render(request, "assistant/_refused.html", {"sentence": refused.sentence}, status=status)
    views = load_transcript(conversation, person(request)) if conversation else []
    context = _frame(_listed(request), conversation) | {
        "refused": refused.sentence,
        "typed": request.POST.get("text", ""),
    }
    if conversation:
        context |= _tail_context(conversation, views)
    return render(request, "assistant/chat.html", context, status=status)


# --- what the person says ---------------------------------------------------------------------------------


@require_POST
@for_ticket_staff
def post_message(request: HttpRequest, conversation_id: int) -> HttpResponse:
    conversation = owned(request, conversation_id)
    try:
        services.post_message(
            conversation=conversation,
            user=person(request),
            text=request.POST.get("text", ""),
            client_key=_client_key(request),
        )
    except services.Refused as refused:
        return _refused(request, refused, conversation)
    return _tail(request, conversation)


def _client_key(request: HttpRequest) -> str:
    return request.POST.get("client_key", "").replace("\x00", "")[
        : services.MAX_CLIENT_KEY
    ] or get_random_string(24)


def _start(request: HttpRequest) -> HttpResponse:
    try:
        conversation = _conversation_with_first_message(
            person(request), request.POST.get("text", ""), _client_key(request)
        )
    except services.Refused as refused:
        return _refused(request, refused, None)
    response: HttpResponse = _back(conversation)
    if request.headers.get("HX-Request"):
        response = HttpResponse(headers={"HX-Redirect": reverse("assistant:thread", args=[conversation.pk])})
    return response


@transaction.atomic
def _conversation_with_first_message(user: User, text: str, client_key: str) -> Conversation:
    """One conversation per submit: the person's row is locked, so that a double click finds the first."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    known = Message.objects.filter(conversation__user=user, client_key=client_key).select_related(
        "conversation"
    )
    if message := known.first():
        return message.conversation
    conversation = services.start_conversation(user)
    services.post_message(conversation=conversation, user=user, text=text, client_key=client_key)
    return conversation


@require_POST
@for_ticket_staff
def judge(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """One verdict about one or several candidates, and the conversation goes on with it if it waited."""
    conversation = owned(request, conversation_id)
    judgement = request.POST.get("judgement", "")
    candidates = [
        int(sent) for sent in request.POST.getlist("candidate") if sent.isdecimal() and len(sent) < 19
    ]
    if judgement not in ConversationTicket.Judgement.values or not candidates:
        raise Http404
    try:
        judging.judge(
            conversation=conversation, user=person(request), candidates=candidates, judgement=judgement
        )
    except services.Refused as refused:
        return _refused(request, refused, conversation)
    except ObjectDoesNotExist:
        raise Http404 from None
    return _tail(request, conversation, judged=candidates, judgement=judgement)


# --- what the person does to an answer --------------------------------------------------------------------


def _on_turn(request: HttpRequest, turn: Turn, act: Callable[[Turn, User], object]) -> HttpResponse:
    try:
        act(turn, person(request))
    except services.Refused as refused:
        return _refused(request, refused, turn.conversation)
    return _tail(request, turn.conversation)


def _turn_again(request: HttpRequest, turn: Turn) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        return _back(turn.conversation)
    view = load_turn(turn, person(request))
    return render(request, "assistant/_turn.html", {"conversation": turn.conversation, "view": view})


@require_POST
@for_ticket_staff
def stop(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    """Stops the answer. The stream itself then brings the end; a page without one gets the turn as it is."""
    turn = services.stop_turn(owned_turn(request, conversation_id, turn_id), person(request))
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return _back(turn.conversation)


@require_POST
@for_ticket_staff
def retry(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    return _on_turn(request, owned_turn(request, conversation_id, turn_id), services.retry_turn)


@require_POST
@for_ticket_staff
def continue_answer(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    return _on_turn(request, owned_turn(request, conversation_id, turn_id), services.continue_turn)


@require_POST
@for_ticket_staff
def undo(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    turn = owned_turn(request, conversation_id, turn_id)
    try:
        services.undo_last_change(turn, person(request))
    except services.Refused as refused:
        return _refused(request, refused, turn.conversation)
    return _turn_again(request, turn)


@require_POST
@for_ticket_staff
def rate(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    turn = owned_turn(request, conversation_id, turn_id)
    helpful = {"yes": True, "no": False}.get(request.POST.get("helpful", ""))
    if helpful is None:
        raise Http404
    try:
        services.rate_turn(turn, person(request), helpful, request.POST.get("feedback", ""))
    except services.Refused as refused:
        return _refused(request, refused, turn.conversation)
    turn.refresh_from_db()
    if not request.headers.get("HX-Request"):
        return _back(turn.conversation)
    return render(request, "assistant/_rating.html", {"turn": turn})


# --- the answer itself ------------------------------------------------------------------------------------


@require_GET
@for_ticket_staff
def stream(request: HttpRequest, conversation_id: int, turn_id: int) -> StreamingHttpResponse:
    """Runs the turn and sends what happens, as server-sent events. Connecting again runs nothing twice."""
    turn = owned_turn(request, conversation_id, turn_id)
    release_connections()
    return StreamingHttpResponse(
        sse.stream(request, turn),
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@login_required
@require_POST
async def answer(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    """The way without JavaScript: runs the turn to its end and goes back to the page."""
    turn = await run_db(owned_turn, request, conversation_id, turn_id)
    await sync_to_async(release_connections)()
    async for _event in loop.run_turn(turn.pk):
        pass
    return _back(turn.conversation)
