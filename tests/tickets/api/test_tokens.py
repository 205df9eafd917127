"""Tokens: hashed, expiring, revocable, made in the admin and shown once."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from tests.factories import UserFactory
from tickets.api.models import ApiToken

TICKETS = "/api/v1/tickets/"
TOKENS = "/admin/tickets_api/apitoken/"


def status_with(header: str) -> int:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    return client.get(TICKETS).status_code


@pytest.fixture
def secret(alice: User) -> str:
    return ApiToken.issue(user=alice, name="monitoring", by=alice)[1]


class TestAuthentication:
    def test_works_in_either_case_of_the_scheme(self, secret: str) -> None:
        assert status_with(f"Bearer {secret}") == status_with(f"bearer {secret}") == 200

    def test_the_database_does_not_hold_it(self, secret: str) -> None:
        row = ApiToken.objects.values().get()
        assert secret.startswith("hd_")
        assert len(secret) > 40
        assert not any(secret[3:] in str(value) for value in row.values())

    @pytest.mark.parametrize(
        "header",
        ["Bearer", "Bearer ", "Bearer x y", "Bearer hd_x", "Bearer \xff\xfe", "Bearer " + "x" * 5_000],
    )
    def test_nonsense_is_refused(self, secret: str, header: str) -> None:
        response = APIClient().get(TICKETS, headers={"authorization": header})
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == "Bearer"
        assert response["Content-Type"] == "application/problem+json"

    @pytest.mark.parametrize("header", ["", "Basic YTpi", "Token x"])
    def test_nothing_or_another_scheme_is_not_logged_in(self, db: None, header: str) -> None:
        assert status_with(header) == 401

    def test_ends_when_it_expires(self, secret: str) -> None:
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert status_with(f"Bearer {secret}") == 401

    def test_ends_when_it_is_revoked(self, secret: str) -> None:
        ApiToken.objects.get().revoke()
        assert status_with(f"Bearer {secret}") == 401

    def test_ends_with_its_person(self, secret: str, alice: User) -> None:
        alice.is_active = False
        alice.save()
        assert status_with(f"Bearer {secret}") == 401

    def test_notes_its_use_once_a_minute(self, secret: str) -> None:
        status_with(f"Bearer {secret}")
        first = ApiToken.objects.get().last_used_at
        status_with(f"Bearer {secret}")
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
        status_with(f"Bearer {secret}")
        assert ApiToken.objects.get().last_used_at > first  # type: ignore[operator]

    def test_a_session_counts_too_but_writes_need_its_csrf_token(self, alice: User) -> None:
        browser = APIClient(enforce_csrf_checks=True)
        browser.force_login(alice)
        assert browser.get(TICKETS).status_code == 200
        response = browser.post(TICKETS, {"title": "x"}, format="json")
        assert response.status_code == 403
        assert response["Content-Type"] == "application/problem+json"
        assert "X-CSRFToken" in response.json()["detail"]

    def test_a_token_needs_no_csrf_token(self, secret: str) -> None:
        program = APIClient(enforce_csrf_checks=True, headers={"authorization": f"Bearer {secret}"})
        assert program.post(TICKETS, {"title": "x"}, format="json").status_code == 201


class TestAdmin:
    def make(self, browser: Client, **fields: Any) -> Any:
        tomorrow = timezone.now() + timedelta(days=1)
        values = {
            "expires_at_0": f"{tomorrow:%Y-%m-%d}",
            "expires_at_1": "12:00:00",
            "name": "nagios",
            **fields,
        }
        return browser.post(f"{TOKENS}add/", values)

    def test_is_made_shown_once_and_works(self, admin_client: Client, alice: User) -> None:
        page = self.make(admin_client, user=alice.pk)
        found = re.search(r"hd_[\w-]{43}", page.content.decode())
        assert found
        assert "no-store" in page["Cache-Control"]
        assert status_with(f"Bearer {found[0]}") == 200
        token = ApiToken.objects.get()
        assert (token.user, token.created_by.username) == (alice, "admin")  # type: ignore[union-attr]
        for address in (TOKENS, f"{TOKENS}{token.pk}/change/", f"{TOKENS}{token.pk}/history/"):
            content = admin_client.get(address).content.decode()
            assert found[0] not in content
            assert token.digest not in content
        assert LogEntry.objects.filter(object_repr="nagios").count() == 1

    @pytest.mark.parametrize("day", ["2020-01-01", "2999-01-01"])
    def test_must_expire_within_a_year(self, admin_client: Client, alice: User, day: str) -> None:
        assert self.make(admin_client, user=alice.pk, expires_at_0=day).status_code == 200
        assert not ApiToken.objects.exists()

    def test_is_revoked_and_stays_as_a_trace(self, admin_client: Client, secret: str) -> None:
        pk = ApiToken.objects.get().pk
        admin_client.post(TOKENS, {"action": "revoke", "_selected_action": [pk]})
        assert status_with(f"Bearer {secret}") == 401
        assert LogEntry.objects.get().object_id == str(pk)
        assert admin_client.post(f"{TOKENS}{pk}/delete/", {"post": "yes"}).status_code == 403

    def test_an_agent_makes_tokens_for_herself_only_and_sees_only_her_own(
        self, alice: User, admin_user: User
    ) -> None:
        ApiToken.issue(user=admin_user, name="of the admin", by=admin_user)
        alice.user_permissions.add(*Permission.objects.filter(codename__endswith="apitoken"))
        browser = Client()
        browser.force_login(alice)
        self.make(browser, user=admin_user.pk)
        assert ApiToken.objects.get(name="nagios").user == alice
        assert "of the admin" not in browser.get(TOKENS).content.decode()
        theirs = ApiToken.objects.get(name="of the admin")
        browser.post(TOKENS, {"action": "revoke", "_selected_action": [theirs.pk]})
        theirs.refresh_from_db()
        assert theirs.revoked_at is None

    def test_needs_the_permission(self, alice: User) -> None:
        browser = Client()
        browser.force_login(alice)
        assert browser.get(TOKENS).status_code == 403


@pytest.mark.usefixtures("alice")
class TestThrottle:
    def test_stops_a_token_and_lets_others_through(self, client: APIClient, settings: Any) -> None:
        settings.API_REQUESTS_PER_MINUTE = 3
        from tests.tickets.api.conftest import client_of

        codes = [client.get(TICKETS).status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        response = client.get(TICKETS)
        assert response["Content-Type"] == "application/problem+json"
        assert 1 <= int(response["Retry-After"]) <= 60
        assert client_of(UserFactory(agent=True)).get(TICKETS).status_code == 200
        assert client_of(User.objects.get(username="alice")).get(TICKETS).status_code == 200

    def test_the_window_slides_and_refused_requests_do_not_count(
        self, settings: Any, monkeypatch: Any
    ) -> None:
        from tickets.api.models import RequestRate

        moment = [60_000.0]
        monkeypatch.setattr("tickets.api.models.time.time", lambda: moment[0])
        admit = [RequestRate.admit("k", 4) for _ in range(6)]
        assert admit == [True] * 4 + [False] * 2
        moment[0] += 60  # a minute later the four still weigh fully …
        assert not RequestRate.admit("k", 4)
        moment[0] += 30  # … half a minute later they weigh two
        assert [RequestRate.admit("k", 4) for _ in range(3)] == [True, True, False]
        moment[0] += 120
        assert RequestRate.admit("k", 4)

    def test_zero_is_no_limit(self, client: APIClient, settings: Any) -> None:
        settings.API_REQUESTS_PER_MINUTE = 0
        assert {client.get(TICKETS).status_code for _ in range(5)} == {200}
