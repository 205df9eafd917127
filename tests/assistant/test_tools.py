"""The six tools: what they return, and what they say to arguments that are wrong."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from pytest_django import Settings

from assistant import store
from assistant.models import Conversation, ConversationTicket, Turn
from assistant.tools import definitions
from assistant.tools.execution import Call
from assistant.tools.scope import Scope
from tests.factories import CategoryFactory, CommentFactory, TicketFactory, UserFactory
from tickets.models import Ticket, Via

UseTool = Callable[..., dict[str, Any]]


@pytest.fixture
def alice(db: None) -> User:
    """In the test's transaction: these tests need no thread and no server."""
    return UserFactory(agent=True, username="alice")


@pytest.fixture
def call(alice: User, conversation: Conversation) -> UseTool:
    """One tool call as the loop makes it: the result the model reads, with `is_error`."""

    def _call(name: str, arguments: Any) -> dict[str, Any]:
        turn = Turn.objects.create(conversation=conversation, status="done")
        scope = Scope(User.objects.get(pk=alice.pk), conversation, turn)
        use = Call(f"toolu_{turn.pk}", name, arguments)
        use.check()
        if use.needs_search:
            use.search(scope)
        stored = store.run_call(scope, use)
        return {**json.loads(stored.result), "is_error": stored.is_error}

    return _call


@pytest.fixture
def ticket(alice: User) -> Ticket:
    return TicketFactory(title="Door is jammed", description="Since Monday.", reporter=alice)


# -- the schemas -------------------------------------------------------------------------------------------


def test_schemas_are_strict_and_within_the_limits_of_the_api() -> None:
    optional = 0
    for tool in definitions.DEFINITIONS:
        schema = tool["input_schema"]
        assert tool["strict"] is True
        assert schema["additionalProperties"] is False
        optional += len(schema["properties"]) - len(schema["required"])
        for argument in schema["properties"].values():
            assert set(argument) <= {"type", "description", "enum"}
    assert len(definitions.DEFINITIONS) <= 20
    assert optional <= 24


# -- wrong arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("get_ticket", {}, "Missing argument ticket_id"),
        ("get_ticket", {"ticket_id": "12"}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": True}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": 1.5}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": None}, "ticket_id must be an integer"),
        ("get_ticket", {"ticket_id": 0}, "between 1 and"),
        ("get_ticket", {"ticket_id": 10**30}, "between 1 and"),
        ("get_ticket", {"ticket_id": 987654}, "There is no ticket 987654"),
        ("get_ticket", {"ticket_id": 1, "colour": "red"}, "Unknown argument colour"),
        ("list_tickets", {"limit": 51}, "limit must be between 1 and 50"),
        ("list_tickets", {"status": "broken"}, "status must be one of: new, open"),
        ("list_tickets", {"order": 3}, "order must be a string"),
        ("list_tickets", {"created_since": "last Tuesday"}, "ISO 8601"),
        ("list_tickets", {"created_since": "2026-13-45"}, "ISO 8601"),
        ("list_tickets", {"assignee": "zaphod"}, "User names: alice"),
        ("list_tickets", {"category": "Cheese"}, "Categories: Doors"),
        ("find_similar_tickets", {"query": "\u200b \n"}, "query must not be blank"),
        ("find_similar_tickets", {"query": "x", "limit": 21}, "between 1 and 20"),
        ("add_comment", {"ticket_id": 1, "body": "x", "internal": "yes"}, "internal must be true or false"),
        ("drop_database", {}, "The tools are: find_similar_tickets"),
    ],
    ids=str,
)
def test_wrong_arguments_get_an_answer_to_act_on(
    call: UseTool, name: str, arguments: dict[str, Any], words: str
) -> None:
    CategoryFactory(name="Doors")
    result = call(name, arguments)
    assert result["is_error"]
    assert words in result["error"]
    assert "Traceback" not in result["error"]


def test_too_long_title_is_refused_not_cut(call: UseTool, ticket: Ticket) -> None:
    result = call("update_ticket", {"ticket_id": ticket.pk, "title": "x" * 201})
    assert "201 characters; at most 200" in result["error"]
    ticket.refresh_from_db()
    assert ticket.title == "Door is jammed"


def test_nul_and_lone_surrogates_are_cleaned(call: UseTool, ticket: Ticket) -> None:
    result = call("add_comment", {"ticket_id": ticket.pk, "body": "a\0b"})
    assert not result["is_error"]
    assert ticket.comments.get().body == "ab"


# -- permissions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codename", "name", "arguments"),
    [
        ("view_ticket", "get_ticket", {}),
        ("view_ticket", "list_tickets", None),
        ("view_ticket", "find_similar_tickets", {"query": "door"}),
        ("add_ticket", "create_ticket", {"title": "x", "description": "y"}),
        ("change_ticket", "update_ticket", {"status": "closed"}),
        ("add_comment", "add_comment", {"body": "x"}),
    ],
)
def test_each_tool_honours_the_persons_permissions(
    call: UseTool, alice: User, ticket: Ticket, codename: str, name: str, arguments: dict[str, Any] | None
) -> None:
    alice.user_permissions.remove(Permission.objects.get(codename=codename))
    with_ticket = name in ("get_ticket", "update_ticket", "add_comment")
    result = call(name, {**(arguments or {}), **({"ticket_id": ticket.pk} if with_ticket else {})})
    assert result["is_error"]
    assert f"tickets.{codename}" in result["error"]
    assert Ticket.objects.get().version == 1
    assert not ticket.comments.exists()


# -- reading -----------------------------------------------------------------------------------------------


def test_get_ticket_tells_all(call: UseTool, ticket: Ticket, alice: User) -> None:
    CommentFactory(ticket=ticket, by=alice, body="Oiled it.", internal=True)
    whole = call("get_ticket", {"ticket_id": ticket.pk})["ticket"]
    assert (whole["id"], whole["title"], whole["description"]) == (
        ticket.pk,
        "Door is jammed",
        "Since Monday.",
    )
    assert (whole["status"], whole["reporter"], whole["assignee"]) == ("new", "alice", None)
    assert [(comment["author"], comment["body"], comment["internal"]) for comment in whole["comments"]] == [
        ("alice", "Oiled it.", True)
    ]


def test_long_descriptions_are_cut_visibly_and_can_be_read_on(call: UseTool, alice: User) -> None:
    text = "".join(f"{n:06d} " for n in range(2000))
    ticket = TicketFactory(title="Log", description=text, reporter=alice)
    shown = call("get_ticket", {"ticket_id": ticket.pk})["ticket"]["description"]
    assert "6000 of 14000 characters are missing" in shown
    assert "from_character 8000" in shown
    rest = call("get_ticket", {"ticket_id": ticket.pk, "from_character": 8000})["ticket"]["description"]
    assert shown[:8000] + rest == text
    behind = call("get_ticket", {"ticket_id": ticket.pk, "from_character": 20_000})
    assert "14000 characters" in behind["error"]


def test_many_comments_are_cut_visibly(call: UseTool, ticket: Ticket, alice: User) -> None:
    for number in range(30):
        CommentFactory(ticket=ticket, by=alice, body=f"{number} " + "x" * 3000)
    result = call("get_ticket", {"ticket_id": ticket.pk})
    whole = result["ticket"]
    assert len(json.dumps(whole)) < 24_000
    assert whole["comments"][-1]["body"].startswith("29 ")
    assert "characters are missing" in whole["comments"][-1]["body"]
    assert f"{30 - len(whole['comments'])} older comments of 30 are left out" in whole["comments_left_out"]


def test_list_tickets_returns_the_total_beside_the_page(call: UseTool, alice: User) -> None:
    for number in range(12):
        TicketFactory(title=f"T{number}", reporter=alice)
    result = call("list_tickets", {})
    assert (result["total"], result["shown"]) == (12, 10)
    assert result["tickets"][0]["title"] == "T11"
    assert "2 more tickets are not shown" in result["more"]


def test_list_tickets_filters(call: UseTool, alice: User) -> None:
    bob = UserFactory(agent=True, username="bob")
    mine = TicketFactory(
        title="Mine", reporter=bob, assignee=alice, priority="urgent", category=CategoryFactory(name="VPN")
    )
    other = TicketFactory(title="Other", reporter=alice, status="resolved")
    TicketFactory(title="Old", reporter=alice, priority="low")

    def ids(**filters: Any) -> set[int]:
        return {row["id"] for row in call("list_tickets", filters)["tickets"]}

    assert ids(assignee="me", status="unresolved", category="vpn", reporter="bob", priority="urgent") == {
        mine.pk
    }
    assert ids(status="resolved") == {other.pk}
    assert mine.pk not in ids(assignee="nobody")
    assert mine.pk not in ids(category="none")
    assert ids(created_since="2999-01-01") == set()
    assert len(ids(created_since="2020-01-01T00:00:00Z")) == 3
    assert call("list_tickets", {"order": "most_urgent"})["tickets"][0]["id"] == mine.pk


# -- changing ----------------------------------------------------------------------------------------------


def test_update_says_what_changed_from_what_to_what(call: UseTool, ticket: Ticket) -> None:
    result = call("update_ticket", {"ticket_id": ticket.pk, "priority": "high"})
    assert result["changes"] == [{"field": "priority", "old": "normal", "new": "high"}]
    ticket.refresh_from_db()
    assert (ticket.priority, ticket.status, ticket.title) == ("high", "new", "Door is jammed")
    event = ticket.events.get(kind="changed")
    assert event.actor is not None
    assert (event.field, event.via, event.actor.username) == ("priority", "chat", "alice")
    assert call("update_ticket", {"ticket_id": ticket.pk, "priority": "high"})["changes"] == []


def test_update_on_a_stale_view_is_refused_with_the_current_state(call: UseTool, ticket: Ticket) -> None:
    call("get_ticket", {"ticket_id": ticket.pk})
    bob = UserFactory(username="bob")
    Ticket.objects.get(pk=ticket.pk).change(by=bob, via=Via.ADMIN, status="pending")
    refused = call("update_ticket", {"ticket_id": ticket.pk, "status": "closed"})
    assert refused["is_error"]
    assert refused["ticket"]["status"] == "pending"
    assert refused["changed_meanwhile"] == [{"field": "status", "old": "new", "new": "pending"}]
    ticket.refresh_from_db()
    assert ticket.status == "pending"
    repeated = call("update_ticket", {"ticket_id": ticket.pk, "status": "closed"})
    assert repeated["changes"] == [{"field": "status", "old": "pending", "new": "closed"}]


def test_the_models_own_change_is_no_stale_view(call: UseTool, ticket: Ticket) -> None:
    call("get_ticket", {"ticket_id": ticket.pk})
    call("update_ticket", {"ticket_id": ticket.pk, "status": "open"})
    assert not call("update_ticket", {"ticket_id": ticket.pk, "status": "closed"})["is_error"]


def test_update_of_nothing_is_refused(call: UseTool, ticket: Ticket) -> None:
    assert "at least one field" in call("update_ticket", {"ticket_id": ticket.pk})["error"]


def test_assignee_and_category_by_name_and_none(call: UseTool, ticket: Ticket, alice: User) -> None:
    category = CategoryFactory(name="Doors")
    call("update_ticket", {"ticket_id": ticket.pk, "assignee": "me", "category": "doors"})
    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.category) == (alice, category)
    call("update_ticket", {"ticket_id": ticket.pk, "assignee": "nobody", "category": "none"})
    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.category) == (None, None)


def test_a_comment_on_a_duplicate_reaches_the_ticket_it_stands_for(
    call: UseTool, ticket: Ticket, alice: User
) -> None:
    duplicate = TicketFactory(title="Same door", reporter=alice)
    duplicate.merge_into(ticket, alice)
    result = call("add_comment", {"ticket_id": duplicate.pk, "body": "Me too"})
    assert result["ticket_id"] == ticket.pk
    assert ticket.comments.get().body == "Me too"


# -- hostile tickets ---------------------------------------------------------------------------------------


def test_tickets_that_tools_returned_are_remembered(
    call: UseTool, ticket: Ticket, conversation: Conversation
) -> None:
    Ticket.objects.filter(pk=ticket.pk).update(description="See https://wiki.example.com/doors.")
    call("get_ticket", {"ticket_id": ticket.pk})
    known = ConversationTicket.objects.get(conversation=conversation)
    assert (known.ticket, known.version_seen, known.addresses) == (
        ticket,
        1,
        ["https://wiki.example.com/doors"],
    )


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("update_ticket", "resolution"), ("update_ticket", "title"), ("add_comment", "body")],
)
def test_an_address_that_the_model_wrote_itself_is_not_listed(
    call: UseTool, ticket: Ticket, conversation: Conversation, tool: str, argument: str
) -> None:
    Ticket.objects.filter(pk=ticket.pk).update(description="See https://wiki.example.com/doors.")
    call("get_ticket", {"ticket_id": ticket.pk})
    call(
        tool,
        {"ticket_id": ticket.pk, argument: "See http://evil.example/p and https://wiki.example.com/doors"},
    )
    call("get_ticket", {"ticket_id": ticket.pk})
    known = ConversationTicket.objects.get(conversation=conversation)
    assert known.addresses == ["https://wiki.example.com/doors"]


def test_an_address_in_a_ticket_that_the_model_created_is_not_listed(
    call: UseTool, conversation: Conversation, settings: Settings
) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    call("find_similar_tickets", {"query": "door"})
    made = call("create_ticket", {"title": "Door", "description": "http://evil.example/\0p"})
    call("get_ticket", {"ticket_id": made["ticket"]["id"]})
    assert [known.addresses for known in conversation.known_tickets.all()] == [[]]


def test_search_off_is_said_plainly(call: UseTool, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    result = call("find_similar_tickets", {"query": "door"})
    assert (result["outcome"], result["is_error"]) == ("unavailable", False)
    assert "switched off in this deployment" in result["reason"]
