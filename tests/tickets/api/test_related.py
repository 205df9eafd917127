"""Comments, history and categories."""

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.factories import CategoryFactory, CommentFactory, TicketFactory, UserFactory
from tests.tickets.api.conftest import client_of
from tickets.models import Comment


def address(pk: int, what: str) -> str:
    return f"/api/v1/tickets/{pk}/{what}/"


class TestComments:
    def test_lists_those_of_the_whole_chain_with_internal_ones(self, client: APIClient, alice: User) -> None:
        target, duplicate = TicketFactory(), TicketFactory()
        CommentFactory(ticket=duplicate, body="first", internal=True)
        CommentFactory(ticket=target, body="second")
        duplicate.merge_into(target, alice)
        for ticket in (target, duplicate):
            rows = client.get(address(ticket.pk, "comments")).json()["results"]
            assert [(row["body"], row["internal"], row["ticket"]) for row in rows] == [
                ("first", True, duplicate.pk),
                ("second", False, target.pk),
            ]

    def test_pages(self, client: APIClient) -> None:
        ticket = TicketFactory()
        for body in "abc":
            CommentFactory(ticket=ticket, body=body)
        first = client.get(address(ticket.pk, "comments"), {"page_size": 2}).json()
        second = client.get(first["next"]).json()
        assert [row["body"] for row in first["results"] + second["results"]] == ["a", "b", "c"]

    def test_adds_one_where_the_ticket_was_merged_into(self, client: APIClient, alice: User) -> None:
        target, duplicate = TicketFactory(), TicketFactory()
        duplicate.merge_into(target, alice)
        response = client.post(
            address(duplicate.pk, "comments"), {"body": "Me too", "internal": True}, format="json"
        )
        assert response.status_code == 201
        comment = Comment.objects.get()
        assert response.json()["ticket"] == target.pk
        assert (comment.ticket, comment.author, comment.internal) == (target, alice, True)
        assert target.events.get(kind="commented").via == "api"

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({}, "#/body"),
            ({"body": " "}, "#/body"),
            ({"body": "x", "internal": "yes"}, "#/internal"),
            ({"body": "x", "author": "bob"}, "#/author"),
        ],
    )
    def test_says_what_is_wrong(self, client: APIClient, body: object, pointer: str) -> None:
        response = client.post(address(TicketFactory().pk, "comments"), body, format="json")
        assert response.status_code == 400
        assert response.json()["errors"][0]["pointer"] == pointer

    def test_needs_the_right_to_comment(self, db: None) -> None:
        looker = client_of(UserFactory(is_staff=True, permissions=["view_ticket", "change_ticket"]))
        ticket = TicketFactory()
        assert looker.post(address(ticket.pk, "comments"), {"body": "x"}, format="json").status_code == 403
        assert looker.get(address(ticket.pk, "comments")).status_code == 200


class TestEvents:
    def test_tells_the_history(self, client: APIClient, alice: User) -> None:
        ticket = TicketFactory(title="Old")
        ticket.change(by=alice, via="chat", title="New")
        rows = client.get(address(ticket.pk, "events")).json()["results"]
        assert [(row["kind"], row["field"], row["old"], row["new"], row["via"]) for row in rows] == [
            ("created", "", "", "Old", "chat"),
            ("changed", "title", "Old", "New", "chat"),
        ]

    def test_cannot_be_written(self, client: APIClient) -> None:
        assert client.post(address(TicketFactory().pk, "events"), {}, format="json").status_code == 405


@pytest.mark.parametrize("what", ["comments", "events", "similar"])
def test_of_an_unknown_ticket(client: APIClient, what: str) -> None:
    assert client.get(address(999, what)).status_code == 404


@pytest.mark.parametrize("what", ["comments", "events", "similar"])
def test_of_a_ticket_one_may_not_see(db: None, what: str) -> None:
    assert client_of(UserFactory(is_staff=True)).get(address(TicketFactory().pk, what)).status_code == 403


def test_categories(client: APIClient) -> None:
    for name in ("Software", "Ärger", "Hardware"):
        CategoryFactory(name=name)
    first = client.get("/api/v1/categories/", {"page_size": 2}).json()
    names = [row["name"] for row in first["results"] + client.get(first["next"]).json()["results"]]
    assert sorted(names) == ["Hardware", "Software", "Ärger"]
    assert client.post("/api/v1/categories/", {"name": "x"}, format="json").status_code == 405
