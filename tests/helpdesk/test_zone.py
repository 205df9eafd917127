"""Dates in the time zone that the browser names."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.test import AsyncClient, Client
from django.urls import path
from django.utils import timezone, translation
from pytest_django.asserts import assertContains

from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    timezone.deactivate()
    translation.deactivate()


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


MOMENT = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    """Written after all middleware has returned, as the answers of the chat are."""

    async def body() -> AsyncIterator[str]:
        yield f"{translation.get_language()} {timezone.localtime(MOMENT).hour} "
        yield str((await sync_to_async(timezone.localtime)(MOMENT)).hour)

    return StreamingHttpResponse(body())


urlpatterns = [path("streamed/", streamed)]


@pytest.mark.urls(__name__)
@pytest.mark.parametrize(("zone", "hour"), [("Pacific/Auckland", 12), ("", 23)])
def test_what_is_streamed_keeps_the_zone_and_the_language(zone: str, hour: int) -> None:
    async def ask() -> bytes:
        client = AsyncClient()
        client.cookies["timezone"] = zone
        response: Any = await client.get("/streamed/", headers={"Accept-Language": "de"})
        return b"".join([piece async for piece in response.streaming_content])

    assert asyncio.run(ask()) == f"de {hour} {hour}".encode()
