"""The addresses of the site itself."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from retrieval.models import IndexState, WorkerState
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_the_front_page_is_the_chat(client: Client) -> None:
    response = client.get("/")
    assert (response.status_code, response["Location"]) == (302, "/chat/")


def test_the_short_address_of_a_ticket(client: Client) -> None:
    response = client.get("/tickets/7/")
    assert (response.status_code, response["Location"]) == (302, "/admin/tickets/ticket/7/change/")


def test_the_icon(client: Client) -> None:
    response = client.get("/favicon.ico", follow=True)
    assert response["Content-Type"] == "image/svg+xml"


def test_pages_carry_a_strict_policy(client: Client) -> None:
    policy = client.get("/login/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("address", "host", "status"),
    [
        ("/login/", "evil.example", 400),
        ("/chat/", "testserver", 403),
        ("/nothing/here/", "testserver", 404),
        ("/static/nothing.css", "testserver", 404),
        ("/logout/", "testserver", 405),
        ("/login/", "testserver", 500),
        ("/api/v1/docs/", "testserver", 200),
        ("/api/v1/nothing/", "testserver", 404),
        ("/api/v2/tickets/", "testserver", 404),
    ],
)
def test_error_pages_and_the_api_carry_it_too(
    client: Client, settings: Settings, address: str, host: str, status: int
) -> None:
    settings.LOGIN_REDIRECT_URL = "no-such-page"
    client.raise_request_exception = False
    client.force_login(UserFactory(is_staff=True))
    answer = client.get(address, headers={"host": host})
    assert answer.status_code == status
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    if address.startswith("/api/") and status >= 400:
        assert answer["Content-Type"] == "application/problem+json"


def test_every_answer_has_a_request_id(client: Client) -> None:
    first, second = client.get("/healthz"), client.get("/healthz")
    assert len(first["X-Request-ID"]) == 12
    assert first["X-Request-ID"] != second["X-Request-ID"]


def test_the_log_tells_of_what_people_do(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="helpdesk.request"):
        for address in ("/healthz", "/static/helpdesk/mark.svg", "/login/?next=secret"):
            client.get(address)
    lines = [str(line.msg) for line in caplog.records if line.name == "helpdesk.request"]
    assert len(lines) == 1
    assert "/login/" in lines[0]
    assert "secret" not in lines[0]


def test_the_admin_works_under_the_policy(admin_client: Client) -> None:
    assert admin_client.get("/admin/").status_code == 200


# --- errors ---


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_form_in_an_encoding_that_browsers_do_not_send(language: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/login/")
    token = client.cookies["csrftoken"].value
    answer = client.post(
        "/login/",
        b"username=x",
        content_type="application/x-www-form-urlencoded; charset=utf-16",
        headers={"X-CSRFToken": token, "Accept-Language": language},
    )
    assert answer.status_code == 400
    assert f'<html lang="{language}">' in answer.content.decode()


@pytest.mark.parametrize("kind", ["multipart/form-data", 'multipart/form-data; boundary="é"'])
def test_an_upload_that_cannot_be_taken_apart(client: Client, kind: str) -> None:
    answer = client.post("/login/", b"--x", content_type=kind)
    assert answer.status_code == 400
    assert "Helpdesk" in answer.content.decode()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_fault_of_ours_has_a_page(client: Client, settings: Settings, language: str) -> None:
    settings.LOGIN_REDIRECT_URL = "no-such-page"
    client.raise_request_exception = False
    client.force_login(UserFactory())
    answer = client.get("/login/", headers={"Accept-Language": language})
    assert answer.status_code == 500
    assert f'<html lang="{language}">' in answer.content.decode()


@pytest.mark.parametrize(
    ("person", "status", "leads_to"),
    [
        ({"is_staff": False}, 403, set()),
        ({"is_staff": True}, 403, {"/admin/"}),
        ({"agent": True}, 200, {"/chat/", "/search/", "/admin/tickets/ticket/"}),
    ],
)
def test_the_pages_lead_only_where_a_person_may_go(
    client: Client, person: dict[str, bool], status: int, leads_to: set[str]
) -> None:
    client.force_login(UserFactory(**person))
    answer = client.get("/chat/")
    assert answer.status_code == status
    navigation = answer.content.decode().partition('<nav class="site-nav"')[2].partition("</nav>")[0]
    assert set(re.findall(r'href="([^"]*)"', navigation)) == leads_to
    assert "Back to the chat" not in answer.content.decode()


def test_whoever_makes_an_account_is_told_what_it_needs_for_tickets(admin_client: Client) -> None:
    page = admin_client.get(f"/admin/auth/user/{UserFactory().pk}/change/").content.decode()
    assert "needs the staff status and one of the groups" in page


# --- /healthz ---


def report(client: Client, address: str = "/healthz") -> tuple[int, dict[str, object], list[str]]:
    response = client.get(address)
    body = response.json()
    return response.status_code, body, [reason["code"] for reason in body["reasons"]]


def a_worker(**fields: object) -> None:
    WorkerState.objects.create(name="worker-1", heartbeat_at=timezone.now(), **fields)


def test_healthy(client: Client) -> None:
    a_worker()
    IndexState.objects.create(model="local:512", total=60, indexed=59, failed=1, counted_at=timezone.now())
    status, body, codes = report(client)
    assert (status, codes) == (200, [])
    assert body["search"] == {
        "provider": "local",
        "model": "local:512",
        "indexed": 59,
        "total": 60,
        "failed": 1,
    }
    assert body["worker"] == {"alive": 1}


def test_no_worker(client: Client) -> None:
    assert report(client)[::2] == (503, ["worker"])


def test_a_silent_worker(client: Client) -> None:
    a_worker()
    WorkerState.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=120))
    assert report(client)[::2] == (503, ["worker"])


def test_a_stopped_worker(client: Client) -> None:
    a_worker(activity=WorkerState.Activity.STOPPED)
    assert report(client)[::2] == (503, ["worker"])


def test_a_pausing_worker_says_why(client: Client) -> None:
    a_worker(activity=WorkerState.Activity.PAUSED, reason="The provider refuses the key.")
    status, body, codes = report(client)
    assert (status, codes) == (503, ["worker_paused"])
    assert "The provider refuses the key." in str(body["reasons"])


def test_without_search_no_worker_is_missed(client: Client, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    assert report(client)[::2] == (200, [])


def test_the_web_part_alone(client: Client) -> None:
    assert report(client, "/healthz?part=web")[::2] == (200, [])


def test_health_is_read_only(client: Client) -> None:
    assert client.post("/healthz").status_code == 405
