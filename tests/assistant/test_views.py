"""The addresses of the chat: works, other owner, no rights, wrong method, bad id; and the stream."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from assistant import loop, sse
from assistant.models import Conversation, ConversationTicket, Message, ToolCall, Turn
from tests.factories import TicketFactory, UserFactory
from tests.fakes.claude import Drop, ScriptedClaude
from tests.fakes.claude import ToolCall as Use
from tickets.models import Ticket

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def alice() -> User:
    return UserFactory(username="alice", agent=True)


@pytest.fixture
def web(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def stranger(alice: User) -> Client:
    """Bob, an agent like Alice, to whom nothing of hers belongs."""
    client = Client()
    client.force_login(UserFactory(username="bob", agent=True))
    return client


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return Conversation.objects.create(user=alice, title="Printer")


def make_turn(
    conversation: Conversation, question: str = "hello", answer: str = "Hi.", **fields: Any
) -> Turn:
    """A finished turn as the loop leaves it."""
    fields = {"status": Turn.Status.DONE, "total_ms": 900} | fields
    turn = Turn.objects.create(conversation=conversation, question=question, answer=answer, **fields)
    said = [(Message.Role.USER, question), (Message.Role.ASSISTANT, answer)]
    for role, text in said:
        if text:
            Message.objects.create(
                conversation=conversation,
                turn=turn,
                role=role,
                content=[{"type": "text", "text": text}],
                from_person=role == Message.Role.USER,
            )
    return turn


@pytest.fixture
def turn(conversation: Conversation) -> Turn:
    return make_turn(conversation)


def running_turn(conversation: Conversation, seconds_ago: float) -> Turn:
    """A turn whose process gave its last sign of life so long ago."""
    alive = timezone.now() - timedelta(seconds=seconds_ago)
    return make_turn(
        conversation,
        answer="",
        status=Turn.Status.RUNNING,
        started_at=alive,
        heartbeat_at=alive,
        total_ms=None,
    )


def addresses(conversation: Conversation, turn: Turn) -> dict[str, str]:
    base = f"/chat/{conversation.pk}/"
    actions = ("stop", "retry", "continue", "undo", "rating", "answer")
    return {name: f"{base}turns/{turn.pk}/{name}/" for name in actions} | {
        "messages": f"{base}messages/",
        "verdicts": f"{base}verdicts/",
    }


# --- who may ----------------------------------------------------------------------------------------------


def test_strangers_are_sent_to_the_login(client: Client, conversation: Conversation, turn: Turn) -> None:
    for address in ("/chat/", f"/chat/{conversation.pk}/", f"/chat/{conversation.pk}/tail/"):
        assert client.get(address)["Location"].startswith("/login/")
    for address in addresses(conversation, turn).values():
        assert client.post(address)["Location"].startswith("/login/")
    assert client.get(f"/chat/{conversation.pk}/turns/{turn.pk}/stream/")["Location"].startswith("/login/")


def test_a_fragment_after_the_session_ended_leads_to_the_login(
    client: Client, conversation: Conversation
) -> None:
    page = f"/chat/{conversation.pk}/"
    headers = HTMX | {"HX-Current-URL": f"http://testserver{page}"}
    response = client.post(f"{page}messages/", {"text": "hello"}, headers=headers)
    assert response.status_code == 401
    assert response["HX-Redirect"] == f"/login/?next=%2Fchat%2F{conversation.pk}%2F"


@pytest.mark.parametrize("person", [{}, {"is_staff": True}, {"permissions": ["view_ticket"]}])
def test_only_staff_with_the_ticket_permissions(client: Client, person: dict[str, Any]) -> None:
    client.force_login(UserFactory(**person))
    assert client.get("/chat/").status_code == 403
    assert client.post("/chat/", {"text": "hello"}).status_code == 403
    assert not Conversation.objects.exists()


def test_a_conversation_is_its_owners_alone(stranger: Client, conversation: Conversation, turn: Turn) -> None:
    for address in (f"/chat/{conversation.pk}/", f"/chat/{conversation.pk}/tail/"):
        assert stranger.get(address).status_code == 404
    sent = {"text": "hello", "helpful": "yes", "candidate": "1", "judgement": "same"}
    for name, address in addresses(conversation, turn).items():
        if name != "answer":
            assert stranger.post(address, sent).status_code == 404, name
    assert "Printer" not in stranger.get("/chat/").content.decode()
    assert Message.objects.count() == 2


def test_wrong_methods(web: Client, conversation: Conversation, turn: Turn) -> None:
    for address in addresses(conversation, turn).values():
        assert web.get(address).status_code == 405, address
    for address in (f"/chat/{conversation.pk}/", f"/chat/{conversation.pk}/tail/"):
        assert web.post(address).status_code == 405, address


def test_bad_ids(web: Client, conversation: Conversation, alice: User) -> None:
    other = make_turn(Conversation.objects.create(user=alice))
    for number in (999_999, 2**63):
        assert web.get(f"/chat/{number}/").status_code == 404
        assert web.post(f"/chat/{conversation.pk}/turns/{number}/stop/").status_code == 404
    assert web.post(f"/chat/{conversation.pk}/turns/{other.pk}/stop/").status_code == 404
    assert web.get("/chat/abc/").status_code == 404


def test_csrf(alice: User, conversation: Conversation, turn: Turn) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    for address in ["/chat/", *addresses(conversation, turn).values()]:
        assert client.post(address, {"text": "hello"}).status_code == 403, address
    assert Message.objects.count() == 2


# --- the pages --------------------------------------------------------------------------------------------


def test_index_lists_my_conversations(web: Client, conversation: Conversation) -> None:
    html = web.get("/chat/").content.decode()
    assert f'href="/chat/{conversation.pk}/"' in html
    assert "What is not working?" in html


def test_rehearsal_is_named_on_every_page_that_uses_it(
    web: Client, conversation: Conversation, settings: Any
) -> None:
    for address in ("/chat/", f"/chat/{conversation.pk}/"):
        assert "Rehearsal model, not Claude." not in web.get(address).content.decode()
    settings.ASSISTANT_BACKEND = "rehearsal"
    for address in ("/chat/", f"/chat/{conversation.pk}/"):
        assert "Rehearsal model, not Claude." in web.get(address).content.decode()


def test_search_that_is_off_is_said_calmly(web: Client, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    assert "Search by meaning is switched off here." in web.get("/chat/").content.decode()


def test_content_is_escaped(web: Client, conversation: Conversation) -> None:
    make_turn(conversation, "<script>alert(1)</script>", "<img src=x onerror=alert(2)> **bold**")
    conversation.title = "<b>title</b>"
    conversation.save()
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert "&lt;script&gt;alert(1)" in html
    assert "<img src=x" not in html
    assert "<strong>bold</strong>" in html
    assert "<b>title" not in html


def test_fifty_turns_take_few_queries(
    web: Client, conversation: Conversation, alice: User, django_assert_max_num_queries: Any
) -> None:
    tickets = [TicketFactory(title=f"Printer {n}", reporter=alice) for n in range(10)]
    for number in range(50):
        _with_search(make_turn(conversation, f"question {number}"), tickets)
    running_turn(conversation, seconds_ago=1)
    with django_assert_max_num_queries(12):
        html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert html.count('<article class="turn"') == 51
    assert "question 49" in html


@pytest.mark.parametrize("address", ["/chat/{pk}/", "/chat/{pk}/tail/"])
def test_a_turn_whose_process_died_is_closed_at_the_next_look(
    web: Client, conversation: Conversation, address: str
) -> None:
    running_turn(conversation, seconds_ago=60)
    html = web.get(address.format(pk=conversation.pk), headers=HTMX).content.decode()
    assert "the program that wrote it ended" in html
    assert "Try again" in html


def _with_search(turn: Turn, tickets: list[Ticket]) -> ToolCall:
    identifier = f"toolu_{turn.pk}"
    blocks = [
        {"type": "tool_use", "id": identifier, "name": "find_similar_tickets", "input": {"query": "printer"}}
    ]
    Message.objects.create(
        conversation=turn.conversation, turn=turn, role=Message.Role.ASSISTANT, content=blocks
    )
    hits = [
        {
            "ticket": ticket.pk,
            "rank": rank,
            "band": "likely" if rank == 1 else "possible",
            "similarity": 0.7,
            "matched": ["meaning"],
            "passage": "Nothing comes out.",
        }
        for rank, ticket in enumerate(tickets, 1)
    ]
    for ticket in tickets:
        ConversationTicket.objects.get_or_create(
            conversation=turn.conversation, ticket=ticket, defaults={"version_seen": 1}
        )
    return ToolCall.objects.create(
        conversation=turn.conversation,
        turn=turn,
        tool_use_id=identifier,
        name="find_similar_tickets",
        input={"query": "printer"},
        result="{}",
        outcome="found",
        hits=hits,
    )


def test_a_finished_step_tells_its_result_and_not_its_beginning(
    web: Client, conversation: Conversation, turn: Turn
) -> None:
    searched = _with_search(turn, [TicketFactory(), TicketFactory()])
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert '<span class="step-text">2 similar tickets found: <q dir="auto">printer</q></span>' in html
    assert "Searching existing tickets" not in html
    searched.is_error, searched.error = True, "forbidden"
    searched.save()
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert "Searching existing tickets" in html
    assert "Not done: you lack the permission." in html


def test_a_long_list_is_counted_with_separators(web: Client, conversation: Conversation, turn: Turn) -> None:
    call = _with_search(turn, [])
    call.name, call.outcome, call.result = "list_tickets", "", '{"total": 100002}'
    call.save()
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert '<span class="step-text">100,002 tickets: ' in html


# --- posting ----------------------------------------------------------------------------------------------


def test_first_message_starts_a_conversation(web: Client, alice: User) -> None:
    response = web.post("/chat/", {"text": "The printer is broken", "client_key": "k1"})
    conversation = Conversation.objects.get()
    assert response.status_code == 303
    assert response["Location"].startswith(f"/chat/{conversation.pk}/")
    assert (conversation.user, conversation.title) == (alice, "The printer is broken")
    assert conversation.turns.get().status == Turn.Status.QUEUED


def test_first_message_sent_twice_is_one_conversation(web: Client) -> None:
    sent = {"text": "The printer is broken", "client_key": "k1"}
    first = web.post("/chat/", sent, headers=HTMX)
    second = web.post("/chat/", sent, headers=HTMX)
    assert first["HX-Redirect"] == second["HX-Redirect"]
    assert Conversation.objects.count() == Turn.objects.count() == Message.objects.count() == 1


@pytest.mark.parametrize("text", ["", "   \n ", "\x00"])
def test_an_empty_first_message_starts_nothing(web: Client, text: str) -> None:
    response = web.post("/chat/", {"text": text})
    assert response.status_code == 422
    assert "The message is empty." in response.content.decode()
    assert not Conversation.objects.exists()


def test_a_message_that_is_too_long_is_kept_in_the_box(web: Client, conversation: Conversation) -> None:
    text = "long " * 20_001
    response = web.post(f"/chat/{conversation.pk}/messages/", {"text": text})
    html = response.content.decode()
    assert response.status_code == 422
    assert "Nothing was sent." in html
    assert text in html
    assert f'href="/chat/{conversation.pk}/" aria-current="page"' in html
    assert not Message.objects.exists()


def test_hundred_thousand_characters_are_a_message(web: Client, conversation: Conversation) -> None:
    text = "long " * 19_999 + "ümläut"[:5]
    assert web.post(f"/chat/{conversation.pk}/messages/", {"text": text}).status_code == 303
    assert Message.objects.get().text == text


def test_odd_characters_survive(web: Client, conversation: Conversation) -> None:
    for text in ("🖨️ 💥", "الطابعة لا تعمل", "a\x00b", "{{ 7*7 }}"):
        assert web.post(f"/chat/{conversation.pk}/messages/", {"text": text}).status_code == 303
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert "🖨️ 💥" in html
    assert "الطابعة لا تعمل" in html
    assert "ab" in html
    assert "{{ 7*7 }}" in html


def test_posting_answers_with_the_new_turn_only(web: Client, conversation: Conversation, turn: Turn) -> None:
    sent = {"text": "and now?", "client_key": "k2", "after": str(turn.pk)}
    html = web.post(f"/chat/{conversation.pk}/messages/", sent, headers=HTMX).content.decode()
    new = conversation.turns.latest("pk")
    assert f'id="turn-{new.pk}"' in html
    assert f"/turns/{new.pk}/stream/" in html
    assert f'id="turn-{turn.pk}"' not in html
    assert f'name="after" value="{new.pk}"' in html


def test_same_submit_twice_is_one_turn(web: Client, conversation: Conversation) -> None:
    for _ in range(2):
        web.post(f"/chat/{conversation.pk}/messages/", {"text": "hello", "client_key": "k"}, headers=HTMX)
    assert Turn.objects.count() == Message.objects.count() == 1


def test_a_message_during_an_answer_waits(web: Client, conversation: Conversation) -> None:
    running = running_turn(conversation, seconds_ago=1)
    sent = {"text": "and another thing", "client_key": "k", "after": str(running.pk)}
    html = web.post(f"/chat/{conversation.pk}/messages/", sent, headers=HTMX).content.decode()
    assert "and another thing" in html
    assert "Waiting" in html
    assert conversation.turns.count() == 1


def test_limits_say_when_it_goes_on(web: Client, conversation: Conversation, settings: Any) -> None:
    settings.ASSISTANT_MESSAGES_PER_MINUTE = 1
    address = f"/chat/{conversation.pk}/messages/"
    assert web.post(address, {"text": "one", "client_key": "1"}, headers=HTMX).status_code == 200
    response = web.post(address, {"text": "two", "client_key": "2"}, headers=HTMX)
    assert response.status_code == 429
    assert "It goes on at" in response.content.decode()


def test_bad_after_is_ignored(web: Client, conversation: Conversation, turn: Turn) -> None:
    for after in ("", "abc", "-1", "9" * 40, "²"):
        html = web.get(f"/chat/{conversation.pk}/tail/", {"after": after}, headers=HTMX).content.decode()
        assert f'id="turn-{turn.pk}"' in html


# --- what the person does to an answer --------------------------------------------------------------------


def test_rating(web: Client, conversation: Conversation, turn: Turn) -> None:
    address = f"/chat/{conversation.pk}/turns/{turn.pk}/rating/"
    html = web.post(address, {"helpful": "no"}, headers=HTMX).content.decode()
    assert 'value="no" aria-pressed="true"' in html
    web.post(address, {"helpful": "no", "feedback": "too long"}, headers=HTMX)
    turn.refresh_from_db()
    assert (turn.helpful, turn.feedback) == (False, "too long")
    assert web.post(address, {"helpful": "perhaps"}).status_code == 404
    assert web.post(address, {"helpful": "yes", "feedback": "x" * 501}).status_code == 422


def test_retry_only_what_is_broken(web: Client, conversation: Conversation, turn: Turn) -> None:
    address = f"/chat/{conversation.pk}/turns/{turn.pk}/retry/"
    assert web.post(address, headers=HTMX).status_code == 422
    broken = make_turn(conversation, answer="", status=Turn.Status.FAILED, error="timeout")
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert "The model did not answer in time." in html
    assert "Try again" in html
    sent = {"after": str(broken.pk)}
    html = web.post(f"/chat/{conversation.pk}/turns/{broken.pk}/retry/", sent, headers=HTMX).content.decode()
    again = Turn.objects.get(retry_of=broken)
    assert f'id="turn-{again.pk}"' in html
    assert "Try again" not in html  # the broken one is sent along without its button


def test_continue_after_a_cut(web: Client, conversation: Conversation) -> None:
    cut = make_turn(conversation, status=Turn.Status.INTERRUPTED, error="cut", stop_reason="max_tokens")
    html = web.get(f"/chat/{conversation.pk}/").content.decode()
    assert f"/turns/{cut.pk}/continue/" in html
    assert web.post(f"/chat/{conversation.pk}/turns/{cut.pk}/continue/").status_code == 303
    assert conversation.turns.count() == 2


def test_undo_takes_back_the_change(web: Client, conversation: Conversation, turn: Turn, alice: User) -> None:
    from tickets.models import Via

    ticket = TicketFactory(reporter=alice)
    ticket.change(by=alice, via=Via.CHAT, priority="high")
    ticket.refresh_from_db()
    use = {"type": "tool_use", "id": "t1", "name": "update_ticket", "input": {"ticket_id": ticket.pk}}
    Message.objects.create(conversation=conversation, turn=turn, role="assistant", content=[use])
    ToolCall.objects.create(
        conversation=conversation,
        turn=turn,
        tool_use_id="t1",
        name="update_ticket",
        input=use["input"],
        result="{}",
        ticket=ticket,
        changes=[{"field": "priority", "old": "normal", "new": "high"}],
        version_after=ticket.version,
    )
    ConversationTicket.objects.create(conversation=conversation, ticket=ticket, version_seen=1)
    assert "Undo" in web.get(f"/chat/{conversation.pk}/").content.decode()
    address = f"/chat/{conversation.pk}/turns/{turn.pk}/undo/"
    html = web.post(address, headers=HTMX).content.decode()
    assert "undone" in html
    ticket.refresh_from_db()
    assert ticket.priority == "normal"


def test_verdicts(web: Client, conversation: Conversation, turn: Turn, alice: User) -> None:
    likely, possible = TicketFactory(reporter=alice), TicketFactory(reporter=alice)
    _with_search(turn, [likely, possible])
    address = f"/chat/{conversation.pk}/verdicts/"
    sent = {"after": str(turn.pk), "judgement": "different"}
    # A possible one: noted, and the likely one is still to be looked at.
    html = web.post(address, sent | {"candidate": possible.pk}, headers=HTMX).content.decode()
    assert f"[data-ticket='{possible.pk}'] .card-actions" in html
    assert conversation.turns.count() == 1
    # The likely one: that is an answer, and the conversation goes on with it, once.
    for _ in range(2):
        web.post(address, sent | {"candidate": likely.pk}, headers=HTMX)
    assert conversation.turns.count() == 2
    assert conversation.messages.filter(from_person=True).last().text == (  # type: ignore[union-attr]
        f"No, that is a different problem, not #{likely.pk}."
    )


def test_bad_verdicts(web: Client, conversation: Conversation, turn: Turn, alice: User) -> None:
    never_suggested = TicketFactory(reporter=alice)
    address = f"/chat/{conversation.pk}/verdicts/"
    for sent in (
        {},
        {"judgement": "same"},
        {"judgement": "same", "candidate": "x"},
        {"judgement": "maybe", "candidate": never_suggested.pk},
        {"judgement": "same", "candidate": never_suggested.pk},
        {"judgement": "same", "candidate": "9" * 18},
    ):
        assert web.post(address, sent, headers=HTMX).status_code == 404
    assert not never_suggested.comments.exists()


# --- the stream -------------------------------------------------------------------------------------------


@pytest.fixture
def claude(settings: Any) -> Iterator[ScriptedClaude]:
    with ScriptedClaude() as server:
        settings.ANTHROPIC_BASE_URL = server.base_url
        yield server


@pytest.fixture
def browser_like(asgi_server: str, alice: User) -> Iterator[httpx.Client]:
    client = Client()
    client.force_login(alice)
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    with httpx.Client(base_url=asgi_server, cookies=cookies, timeout=30) as web:
        yield web


def queued(conversation: Conversation, text: str = "hello") -> Turn:
    from assistant import services

    posted = services.post_message(
        conversation=conversation, user=conversation.user, text=text, client_key=text
    )
    return posted.turn


def events_of(body: str) -> list[tuple[str, str]]:
    """(name, data) of each event."""
    found = []
    for part in body.split("\n\n"):
        lines = part.split("\n")
        names = [line[7:] for line in lines if line.startswith("event: ")]
        if names:
            found.append((names[0], "\n".join(line[6:] for line in lines if line.startswith("data: "))))
    return found


@pytest.mark.django_db(transaction=True)
def test_the_stream_tells_the_turn_and_ends(
    browser_like: httpx.Client, claude: ScriptedClaude, conversation: Conversation
) -> None:
    claude.reply("I look. <b>", Use("list_tickets", {}))
    claude.reply("There is **nothing**.")
    turn = queued(conversation)
    response = browser_like.get(f"/chat/{conversation.pk}/turns/{turn.pk}/stream/")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-store"
    events = events_of(response.text)
    names = [name for name, _data in events]
    assert names[-1] == "done"
    assert names.count("done") == 1
    assert "I look. &lt;b&gt;" in "".join(data for name, data in events if name == "text")
    assert any('data-state="running"' in data for name, data in events if name == "flow")
    assert any('hx-swap-oob="true"' in data for name, data in events if name == "flow")
    assert "<strong>nothing</strong>" in events[-1][1]


@pytest.mark.django_db(transaction=True)
def test_connecting_again_runs_nothing_again(
    browser_like: httpx.Client, claude: ScriptedClaude, conversation: Conversation
) -> None:
    claude.reply("Only once.")
    turn = queued(conversation)
    address = f"/chat/{conversation.pk}/turns/{turn.pk}/stream/"
    for _ in range(2):
        events = events_of(browser_like.get(address).text)
        assert events[-1][0] == "done"
        assert "Only once." in events[-1][1]
    assert len(claude.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_closing_the_connection_interrupts_the_turn(
    browser_like: httpx.Client, claude: ScriptedClaude, conversation: Conversation
) -> None:
    from tests.fakes.claude import Hang

    claude.reply("This goes on and on and on", fault=Hang(after=4))
    turn = queued(conversation)
    with browser_like.stream("GET", f"/chat/{conversation.pk}/turns/{turn.pk}/stream/") as response:
        next(line for line in response.iter_lines() if line == "event: text")
    assert claude.requests[0].closed_by_client.wait(10)
    _wait_until(lambda: Turn.objects.get(pk=turn.pk).status == Turn.Status.INTERRUPTED)


@pytest.mark.django_db(transaction=True)
def test_a_broken_line_ends_with_the_sentence_and_a_retry(
    browser_like: httpx.Client, claude: ScriptedClaude, conversation: Conversation
) -> None:
    claude.fail(Drop(after=6))
    turn = queued(conversation)
    name, html = events_of(browser_like.get(f"/chat/{conversation.pk}/turns/{turn.pk}/stream/").text)[-1]
    assert name == "done"
    assert "broke off" in html
    assert "Try again" in html


@pytest.mark.django_db(transaction=True)
def test_the_stream_is_the_owners_alone(
    asgi_server: str, conversation: Conversation, claude: ScriptedClaude
) -> None:
    turn = queued(conversation)
    client = Client()
    client.force_login(UserFactory(username="bob", agent=True))
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    response = httpx.get(f"{asgi_server}/chat/{conversation.pk}/turns/{turn.pk}/stream/", cookies=cookies)
    assert response.status_code == 404
    assert Turn.objects.get(pk=turn.pk).status == Turn.Status.QUEUED


@pytest.mark.django_db(transaction=True)
def test_long_silence_is_filled_with_comments(
    browser_like: httpx.Client,
    claude: ScriptedClaude,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.fakes.claude import Pace

    monkeypatch.setattr(loop, "SILENCE_SECONDS", 0.05)
    claude.reply("Slow.", pace=Pace(first=0.4, token=0.01))
    turn = queued(conversation)
    body = browser_like.get(f"/chat/{conversation.pk}/turns/{turn.pk}/stream/").text
    assert ": keep-alive" in body
    assert events_of(body)[-1][0] == "done"


def _wait_until(condition: Any, seconds: float = 10) -> None:
    import time

    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def test_one_event_is_one_message_whatever_the_text() -> None:
    assert sse.message("text", "a\r\nb\rc\n") == b"event: text\ndata: a\ndata: b\ndata: c\ndata: \n\n"
    assert sse.message("text", "\ud800") == b"event: text\ndata: ?\n\n"
