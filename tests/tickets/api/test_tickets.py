"""Create, read, change and list tickets."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tests.tickets.api.conftest import client_of
from tickets.models import Ticket, TicketEvent

TICKETS = "/api/v1/tickets/"


class TestCreate:
    def test_creates_through_the_service_with_history(self, client: APIClient, alice: User) -> None:
        CategoryFactory(name="Hardware")
        body = {
            "title": "Printer on fire",
            "description": "Room 2.04",
            "priority": "urgent",
            "category": "hardware",
        }
        response = client.post(TICKETS, body, format="json")
        assert response.status_code == 201
        ticket = Ticket.objects.get()
        assert response["Location"] == f"http://testserver/api/v1/tickets/{ticket.pk}/"
        assert response["ETag"] == '"1"'
        assert response.json() == client.get(response["Location"]).json()
        assert (ticket.source, ticket.reporter, ticket.category.name) == ("api", alice, "Hardware")  # type: ignore[union-attr]
        event = TicketEvent.objects.get()
        assert (event.kind, event.actor, event.via) == ("created", alice, "api")

    def test_on_behalf_of_somebody_else(self, client: APIClient, alice: User) -> None:
        bob = UserFactory(username="bob")
        response = client.post(
            TICKETS, {"title": "No network", "reporter": "bob", "assignee": "alice"}, format="json"
        )
        assert (response.json()["reporter"], response.json()["assignee"]) == ("bob", "alice")
        assert TicketEvent.objects.get().actor == alice
        assert Ticket.objects.get().reporter == bob

    def test_text_is_cleaned_as_everywhere(self, client: APIClient) -> None:
        raw = b'{"title": "Tab\\u0000le \\ud800 x", "description": "a\\r\\nb\\u0000"}'
        response = client.generic("POST", TICKETS, raw, "application/json")  # type: ignore[arg-type]
        assert response.status_code == 201, response.content
        assert response.json()["title"] == "Table \ufffd x"
        assert response.json()["description"] == "a\nb"

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({}, "#/title"),
            ({"title": "x" * 201}, "#/title"),
            ({"title": " \u200b "}, "#/title"),
            ({"title": 7}, "#/title"),
            ({"title": None}, "#/title"),
            ({"title": "x", "priority": "extreme"}, "#/priority"),
            ({"title": "x", "category": "Nonsense"}, "#/category"),
            ({"title": "x", "reporter": "nobody"}, "#/reporter"),
            ({"title": "x", "assignee": "no\0body"}, "#/assignee"),
            ({"title": "x", "titel": "y"}, "#/titel"),
            ({"title": "x", "a/b~c": "y"}, "#/a~1b~0c"),
            ({"title": "x", "version": 7}, "#/version"),
            ({"title": "x", "description": "y" * 1_000_001}, "#/description"),
            ([], "#"),
            ("x", "#"),
        ],
    )
    def test_says_where_it_is_wrong(self, client: APIClient, body: Any, pointer: str) -> None:
        response = client.post(TICKETS, body, format="json")
        assert response.status_code == 400, response.content
        assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
        assert not Ticket.objects.exists()

    def test_needs_the_right_to_add(self, db: None) -> None:
        looker = client_of(UserFactory(is_staff=True, permissions=["view_ticket"]))
        assert looker.post(TICKETS, {"title": "x"}, format="json").status_code == 403
        assert looker.get(TICKETS).status_code == 200


class TestRead:
    def test_whole(self, client: APIClient) -> None:
        ticket = TicketFactory(title="No sound", description="Since Monday", resolution="Cable")
        body = client.get(f"{TICKETS}{ticket.pk}/").json()
        assert (body["title"], body["description"], body["resolution"]) == (
            "No sound",
            "Since Monday",
            "Cable",
        )

    @pytest.mark.parametrize("pk", [999, 10**30])
    def test_unknown(self, client: APIClient, pk: int) -> None:
        assert client.get(f"{TICKETS}{pk}/").status_code == 404

    def test_needs_the_right_to_view(self, db: None) -> None:
        ticket = TicketFactory()
        for stranger in (UserFactory(), UserFactory(permissions=["view_ticket"]), UserFactory(is_staff=True)):
            assert client_of(stranger).get(f"{TICKETS}{ticket.pk}/").status_code == 403

    def test_at_most_six_queries(self, client: APIClient) -> None:
        ticket = TicketFactory(assignee=UserFactory(is_staff=True), category=CategoryFactory())
        client.get(TICKETS)  # notes the use of the token
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(f"{TICKETS}{ticket.pk}/").status_code == 200
        assert len(queries) <= 5, [query["sql"] for query in queries]


class TestChange:
    def test_only_what_is_named(self, client: APIClient, alice: User) -> None:
        ticket = TicketFactory(title="Mouse", description="dead")
        response = client.patch(
            f"{TICKETS}{ticket.pk}/", {"status": "open", "assignee": "alice"}, format="json"
        )
        assert response.status_code == 200
        assert response["ETag"] == '"2"'
        body = response.json()
        assert (body["status"], body["assignee"], body["title"], body["version"]) == (
            "open",
            "alice",
            "Mouse",
            2,
        )
        changed = TicketEvent.objects.filter(kind="changed")
        assert {(event.field, event.via, event.actor_id) for event in changed} == {
            ("status", "api", alice.pk),
            ("assignee", "api", alice.pk),
        }

    def test_nothing_to_null(self, client: APIClient, alice: User) -> None:
        ticket = TicketFactory(assignee=alice, category=CategoryFactory())
        response = client.patch(f"{TICKETS}{ticket.pk}/", {"assignee": None, "category": None}, format="json")
        assert (response.json()["assignee"], response.json()["category"]) == (None, None)

    def test_a_duplicate_keeps_its_status(self, client: APIClient, alice: User) -> None:
        ticket, target = TicketFactory(), TicketFactory()
        ticket.merge_into(target, alice)
        response = client.patch(f"{TICKETS}{ticket.pk}/", {"status": "open"}, format="json")
        assert response.status_code == 400
        assert response.json()["errors"][0]["pointer"] == "#/status"

    def test_needs_the_right_to_change(self, db: None) -> None:
        ticket = TicketFactory()
        looker = client_of(UserFactory(is_staff=True, permissions=["view_ticket", "add_ticket"]))
        assert looker.patch(f"{TICKETS}{ticket.pk}/", {"status": "open"}, format="json").status_code == 403
        ticket.refresh_from_db()
        assert ticket.status == "new"

    def test_if_match_with_the_current_version(self, client: APIClient) -> None:
        ticket = TicketFactory()
        tag = client.get(f"{TICKETS}{ticket.pk}/")["ETag"]
        for condition in (tag, "*", '"2", "99"'):
            response = client.patch(
                f"{TICKETS}{ticket.pk}/", {"status": "open"}, format="json", headers={"If-Match": condition}
            )
            assert response.status_code == 200, condition

    @pytest.mark.parametrize("condition", ['"1"', 'W/"2"', "nonsense", '"99999999999999"', "2", ""])
    def test_if_match_with_another_version_answers_the_current_state(
        self, client: APIClient, alice: User, condition: str
    ) -> None:
        ticket = TicketFactory(title="Old")
        ticket.change(by=alice, via="admin", title="New")
        response = client.patch(
            f"{TICKETS}{ticket.pk}/", {"title": "Mine"}, format="json", headers={"If-Match": condition}
        )
        assert response.status_code == 412
        assert response["Content-Type"] == "application/problem+json"
        assert response["ETag"] == '"2"'
        body = response.json()
        assert body["type"] == "urn:helpdesk:problem:stale-ticket"
        assert (body["ticket"]["title"], body["ticket"]["version"]) == ("New", 2)
        assert body["changes"][-1] | {"id": 0, "created_at": ""} == {
            "id": 0, "kind": "changed", "field": "title", "old": "Old", "new": "New",
            "actor": "alice", "via": "admin", "version": 2, "created_at": "",
        }  # fmt: skip
        ticket.refresh_from_db()
        assert ticket.title == "New"


class TestList:
    def test_newest_first_without_long_texts(self, client: APIClient) -> None:
        first, second = TicketFactory(description="long"), TicketFactory()
        body = client.get(TICKETS).json()
        assert [row["id"] for row in body["results"]] == [second.pk, first.pk]
        assert "description" not in body["results"][0]
        assert (body["next"], body["previous"]) == (None, None)

    def test_as_many_queries_for_fifty_as_for_one_and_no_count(self, client: APIClient) -> None:
        TicketFactory(assignee=UserFactory(is_staff=True), category=CategoryFactory())
        client.get(TICKETS)
        counts = []
        for _ in range(2):
            with CaptureQueriesContext(connection) as queries:
                client.get(TICKETS, {"status": "new", "reporter": "x", "category": "y", "q": "z"})
                client.get(TICKETS)
            counts.append(len(queries))
            assert not any("COUNT(" in query["sql"] for query in queries)
            TicketFactory.create_batch(12, assignee=UserFactory(is_staff=True), category=CategoryFactory())
        assert counts == [10, 10]

    def test_reads_no_long_texts(self, client: APIClient) -> None:
        TicketFactory()
        with CaptureQueriesContext(connection) as queries:
            client.get(TICKETS)
        assert not any('"description"' in query["sql"] for query in queries)

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("status=open", {"open"}),
            ("status=open&status=closed", {"open", "closed"}),
            ("unresolved=true", {"open", "words", "other"}),
            ("unresolved=false", {"closed"}),
            ("priority=high", {"open"}),
            ("category=hardWARE", {"open"}),
            ("reporter=bob", {"words"}),
            ("assignee=alice", {"closed"}),
            ("unassigned=true", {"open", "words", "other"}),
            ("source=api", {"other"}),
            ("q=toner+cartridge", {"words"}),
            ("q=toner+-cartridge", set()),
            ("created_after=2026-01-01T00:00:00Z", {"words", "other", "closed"}),
            ("created_before=2026-01-01T00:00:00%2B01:00", {"open"}),
            ("status=open&priority=low", set()),
            ("duplicate_of=1", set()),
        ],
    )
    def test_filters(self, client: APIClient, alice: User, query: str, expected: set[str]) -> None:
        TicketFactory(
            title="open", status="open", priority="high", category=CategoryFactory(name="Hardware"),
            created_at=datetime.fromisoformat("2025-06-01T00:00:00Z"),
        )  # fmt: skip
        TicketFactory(title="closed", status="closed", assignee=alice)
        TicketFactory(title="words", description="Toner cartridge", reporter=UserFactory(username="bob"))
        TicketFactory(title="other", source="api")
        rows = client.get(f"{TICKETS}?{query}").json()["results"]
        assert {row["title"] for row in rows} == expected

    @pytest.mark.parametrize(
        ("query", "parameter"),
        [
            ("stauts=open", "stauts"),
            ("status=opne", "status"),
            ("status=", "status"),
            ("unresolved=null", "unresolved"),
            ("q=a&q=b", "q"),
            ("updated_before=", "updated_before"),
            ("created_after=yesterday", "created_after"),
            ("duplicate_of=x", "duplicate_of"),
            ("reporter=%00", "reporter"),
            ("q=%00", "q"),
            ("ordering=title", "ordering"),
            ("page_size=0", "page_size"),
            ("page_size=201", "page_size"),
            ("page_size=-1", "page_size"),
            ("page_size=%C2%B2", "page_size"),
            ("cursor=x", "cursor"),
            ("cursor=W10", "cursor"),
        ],
    )
    def test_refuses_what_it_does_not_understand(self, client: APIClient, query: str, parameter: str) -> None:
        response = client.get(f"{TICKETS}?{query}")
        assert response.status_code == 400, response.content
        assert [error["parameter"] for error in response.json()["errors"]] == [parameter]

    @pytest.mark.parametrize(
        "ordering", ["-created_at", "created_at", "-updated_at", "updated_at", "-id", "id"]
    )
    def test_pages_show_everything_once_in_both_directions(self, client: APIClient, ordering: str) -> None:
        now = timezone.now()
        for number in range(11):
            # Three moments only, as an import by date has them.
            moment = now - timedelta(days=number % 3)
            TicketFactory(created_at=moment, updated_at=moment)
        field, sign = ordering.lstrip("-"), -1 if ordering.startswith("-") else 1
        rows = Ticket.objects.values_list(field, "pk")
        expected = [pk for _value, pk in sorted(rows)][::sign]
        pages, last = walk(client, f"{TICKETS}?ordering={ordering}&page_size=4", "next")
        assert [len(page) for page in pages] == [4, 4, 3]
        assert [pk for page in pages for pk in page] == expected
        back, _first = walk(client, last, "previous")
        assert back[::-1] == pages

    def test_a_ticket_that_arrives_between_pages_shifts_nothing(self, client: APIClient) -> None:
        tickets = TicketFactory.create_batch(4)
        first = client.get(TICKETS, {"page_size": 2}).json()
        TicketFactory()
        second = client.get(first["next"]).json()
        seen = [row["id"] for row in first["results"] + second["results"]]
        assert seen == [ticket.pk for ticket in reversed(tickets)]

    def test_a_cursor_keeps_the_filter_and_belongs_to_its_ordering(self, client: APIClient) -> None:
        TicketFactory.create_batch(3, status="open")
        TicketFactory.create_batch(3, status="closed")
        link = client.get(TICKETS, {"status": "open", "page_size": "2"}).json()["next"]
        assert [row["status"] for row in client.get(link).json()["results"]] == ["open"]
        assert client.get(f"{link}&ordering=id").status_code == 400


def walk(client: APIClient, address: str, direction: str) -> tuple[list[list[int]], str]:
    pages = []
    while True:
        body = client.get(address).json()
        pages.append([row["id"] for row in body["results"]])
        if body[direction] is None:
            return pages, address
        address = body[direction]
