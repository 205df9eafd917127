"""Dates in the time zone that the browser names."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django.asserts import assertContains

from helpdesk.zone import browser_time_zone
from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("", "03/01/2026 11:30 p.m."),
        ("Pacific/Auckland", "03/02/2026 12:30 p.m."),
        ("America/New_York", "03/01/2026 6:30 p.m."),
        ("Mars/Olympus", "03/01/2026 11:30 p.m."),
        ("../../etc/passwd", "03/01/2026 11:30 p.m."),
        ("\x7f" * 5000, "03/01/2026 11:30 p.m."),
    ],
)
def test_a_date_in_the_browsers_zone(client: Client, zone: str, shown: str) -> None:
    person = UserFactory(agent=True)
    TicketFactory(created_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    client.force_login(person)
    client.cookies["timezone"] = zone
    assertContains(client.get("/admin/tickets/ticket/"), f'title="{shown}"')


def test_the_zone_of_one_person_is_not_the_next_ones(client: Client) -> None:
    TicketFactory(created_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    client.force_login(UserFactory(agent=True))
    client.cookies["timezone"] = "Pacific/Auckland"
    client.get("/admin/tickets/ticket/")
    del client.cookies["timezone"]
    assertContains(client.get("/admin/tickets/ticket/"), "03/01/2026 11:30 p.m.")


@pytest.mark.parametrize(("zone", "hour"), [("Pacific/Auckland", 12), ("", 23)])
def test_what_is_streamed_later_and_rendered_in_threads_keeps_the_zone(zone: str, hour: int) -> None:
    moment = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)

    async def body() -> AsyncIterator[str]:
        yield str(timezone.localtime(moment).hour)
        yield str((await sync_to_async(timezone.localtime)(moment)).hour)

    async def view(request: HttpRequest) -> StreamingHttpResponse:
        return StreamingHttpResponse(body())

    async def ask() -> list[bytes]:
        request = RequestFactory().get("/")
        request.COOKIES["timezone"] = zone
        response = await browser_time_zone(view)(request)
        return [piece async for piece in response]

    assert asyncio.run(ask()) == [str(hour).encode()] * 2
