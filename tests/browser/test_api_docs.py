"""The page that documents the API: browsable, from this site alone, under the strict policy."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.browser


def test_shows_the_operations_and_tries_one_out_with_the_session(page: Any, asgi_server: str) -> None:
    """A refused resource or a script error fails the test, see the fixture."""
    TicketFactory(title="Seen through the docs")
    UserFactory(agent=True, username="alice", password="secret")
    hosts = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto("/login/")
    page.fill("[name=username]", "alice")
    page.fill("[name=password]", "secret")
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "/login/" not in address)
    answer = page.goto("/api/v1/docs/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    page.click("#operations-tickets-tickets_list .opblock-summary-control")
    page.click("text=Try it out")
    page.click("button.execute")
    body = page.locator(".live-responses-table .response-col_description code.language-json").first
    assert json.loads(body.inner_text())["results"][0]["title"] == "Seen through the docs"
    assert hosts - {""} == {urlsplit(asgi_server).netloc}  # "" are the icons inside the style sheet
