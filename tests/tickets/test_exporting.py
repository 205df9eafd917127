"""Export of a list of tickets as CSV, streamed and safe to open."""

import csv
import io
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets import exporting
from tickets.exporting import csv_response, guarded
from tickets.models import Ticket

LIST = "/admin/tickets/ticket/"


@pytest.fixture
def alice(db: Any) -> User:
    return UserFactory(agent=True, username="alice")


def parts_of(response: Any) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [part async for part in response.streaming_content]

    parts: list[bytes] = async_to_sync(collect)()
    return parts


def rows_of(response: Any) -> list[dict[str, str]]:
    text = b"".join(parts_of(response)).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_keeps_order_and_text_and_streams_in_pieces(alice: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(exporting, "AT_ONCE", 2)
    first = TicketFactory(title='Tür, "kaputt"', description="one\ntwo", assignee=alice)
    tickets = [first, *TicketFactory.create_batch(4)]
    response = csv_response(Ticket.objects.order_by("pk"), alice)
    parts = parts_of(response)
    assert len(parts) == 4  # the header, then two at a time
    rows = list(csv.DictReader(io.StringIO(b"".join(parts).decode("utf-8-sig"), newline="")))
    assert [int(row["id"]) for row in rows] == [ticket.pk for ticket in tickets]
    assert (rows[0]["title"], rows[0]["description"]) == ('Tür, "kaputt"', "one\ntwo")
    assert (rows[0]["assignee"], rows[1]["assignee"]) == ("alice", "")
    assert rows[0]["created_at"] == first.created_at.isoformat()


def test_leaves_out_what_one_may_not_see(alice: User) -> None:
    TicketFactory()
    stranger = UserFactory()
    assert rows_of(csv_response(Ticket.objects.all(), stranger)) == []


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+49 30", "'+49 30"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        (" =1", "' =1"),
        ("＝1", "'＝1"),
        ("a=b", "a=b"),
        (-5, -5),
        ("", ""),
        (None, None),
    ],
)
def test_no_cell_is_a_formula(cell: object, expected: object) -> None:
    assert guarded(cell) == expected


class TestAdmin:
    def test_exports_the_chosen_tickets(self, alice: User) -> None:
        chosen, _other = TicketFactory(title="=cmd()", category=CategoryFactory()), TicketFactory()
        browser = Client()
        browser.force_login(alice)
        response = browser.post(LIST, {"action": "export_as_csv", "_selected_action": [chosen.pk]})
        assert response["Content-Disposition"].startswith('attachment; filename="tickets-')
        assert [row["title"] for row in rows_of(response)] == ["'=cmd()"]

    def test_exports_the_whole_narrowed_list(self, alice: User) -> None:
        TicketFactory(title="One", status="closed")
        TicketFactory(title="Two", status="open")
        browser = Client()
        browser.force_login(alice)
        data = {"action": "export_as_csv", "_selected_action": ["1"], "select_across": "1"}
        response = browser.post(f"{LIST}?status__exact=closed", data)
        assert [row["title"] for row in rows_of(response)] == ["One"]
