"""What stands between a stranger and the tickets: the login, the headers, the settings, the audit trail."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from helpdesk.models import AuditEvent
from tests.factories import UserFactory
from tickets.api.models import ApiToken

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    user = UserFactory(username="alice", is_staff=True)
    user.set_password(PASSWORD)
    user.save()
    AuditEvent.objects.all().delete()
    return user


def log_in(client: Client, name: str = "alice", password: str = "wrong", **headers: Any) -> int:
    address = headers.pop("page", "/login/")
    return client.post(address, {"username": name, "password": password}, **headers).status_code


# --- guessing passwords ---


def test_too_many_guesses_lock_out_even_the_right_password(
    alice: User, client: Client, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    assert [log_in(client) for _ in range(3)] == [200, 200, 429]
    form = {"username": "alice", "password": PASSWORD}
    answer = client.post("/login/", form, headers={"Accept-Language": "en"})
    assert answer.status_code == 429
    assert answer["Retry-After"] == "900"
    assert "not even with the right password" in answer.content.decode()
    assert "'unsafe-inline'" not in answer["Content-Security-Policy"]
    assert "_auth_user_id" not in client.session


def test_the_admin_has_no_login_of_its_own(alice: User, client: Client) -> None:
    assert log_in(client, password=PASSWORD, page="/admin/login/") == 405
    page = "/admin/tickets/ticket/?view=mine&o=-1"
    answer = client.get(page, follow=True)
    assert answer.redirect_chain[-1][0] == "/login/?next=/admin/tickets/ticket/%3Fview%3Dmine%26o%3D-1"
    form = {"username": "alice", "password": PASSWORD, "next": answer.context["next"]}
    assert client.post("/login/", form)["Location"] == page
    assert client.get("/admin/login/", follow=True).redirect_chain[-1][0] == "/admin/"


def test_the_admins_login_leads_to_no_foreign_site(alice: User, client: Client) -> None:
    client.force_login(alice)
    for foreign in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        answer = client.get("/admin/login/", {"next": foreign}, follow=True)
        assert answer.redirect_chain[-1][0] == "/chat/"


def test_who_may_not_enter_the_admin_is_told_and_not_sent_in_circles(client: Client) -> None:
    client.force_login(UserFactory(is_staff=False))
    answer = client.get("/admin/", follow=True, headers={"Accept-Language": "en"})
    assert answer.status_code == 403
    assert "You may not open this page" in answer.content.decode()


def test_neither_colleagues_nor_the_same_name_elsewhere_are_locked_out(
    alice: User, client: Client, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    assert [log_in(client) for _ in range(2)] == [200, 429]
    assert log_in(client, name="bob") == 200
    assert log_in(client, password=PASSWORD, REMOTE_ADDR="192.0.2.7") == 302


def test_a_login_forgives_earlier_slips(alice: User, client: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    assert log_in(client) == 200
    assert log_in(client, password=PASSWORD) == 302
    assert log_in(Client()) == 200


def test_an_invented_address_does_not_get_around_the_lock(alice: User, client: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    invented = [log_in(client, HTTP_X_FORWARDED_FOR=f"198.51.100.{n}") for n in range(3)]
    assert invented == [200, 429, 429]


def test_behind_a_proxy_its_word_counts_and_not_the_clients(
    alice: User, client: Client, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    settings.TRUSTED_PROXIES = 1
    chain = [log_in(client, HTTP_X_FORWARDED_FOR=f"198.51.100.{n}, 203.0.113.5") for n in range(3)]
    assert chain == [200, 429, 429]
    assert log_in(client, password=PASSWORD, HTTP_X_FORWARDED_FOR="203.0.113.6") == 302


@pytest.mark.parametrize("password", ["short", "alice-alice", "123456789012"])
def test_weak_passwords_are_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="alice"))


def test_sessions_end_after_half_a_day(alice: User, client: Client) -> None:
    log_in(client, password=PASSWORD)
    cookie = client.cookies["sessionid"]
    assert (cookie["max-age"], cookie["httponly"], cookie["samesite"]) == (12 * 3600, True, "Lax")


# --- https ---


def test_https_is_demanded_and_remembered(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 3_600
    assert client.get("/login/")["Location"].startswith("https://")
    assert client.get("/healthz").status_code in (200, 503)
    secure = client.get("/login/", secure=True)
    assert secure["Strict-Transport-Security"] == "max-age=3600; includeSubDomains"


def test_a_client_cannot_claim_https(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/login/", HTTP_X_FORWARDED_PROTO="https").status_code == 301


def production(**environment: str) -> subprocess.CompletedProcess[str]:
    """`check --deploy` as on a server."""
    given = {
        "PATH": os.environ["PATH"],
        "ENV_FILE": "",
        "SECRET_KEY": "9f2k" * 20 + "abcdefghij",
        "ALLOWED_HOSTS": "helpdesk.example.com",
        "CSRF_TRUSTED_ORIGINS": "https://helpdesk.example.com",
        "TRUSTED_PROXIES": "1",
        "ANTHROPIC_API_KEY": "sk-ant-of-a-server",
        "DATABASE_URL": "postgres://helpdesk:secret@db.example.com/helpdesk",
        "EMBEDDING_PROVIDER": "local",
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(
        command, cwd=ROOT, env=given | environment, capture_output=True, text=True, timeout=100
    )


def test_check_deploy_is_clean() -> None:
    found = production()
    assert found.returncode == 0, found.stderr
    assert "no issues" in found.stdout + found.stderr


def test_check_deploy_objects() -> None:
    found = production(COOKIES_OVER_HTTPS_ONLY="off")
    assert found.returncode == 1
    assert "security.W012" in found.stderr


# --- the audit trail ---


def trail() -> list[tuple[str, str, str]]:
    rows = AuditEvent.objects.order_by("pk").values_list("kind", "person", "detail")
    return [(kind, person, detail) for kind, person, detail in rows]


def test_logins_are_recorded(alice: User, client: Client) -> None:
    log_in(client)
    log_in(client, name=PASSWORD)
    log_in(client, password=PASSWORD, REMOTE_ADDR="192.0.2.7")
    client.post("/logout/")
    assert [row[:2] for row in trail()] == [
        ("login_failed", "alice"),
        ("login_failed", "(unknown account)"),
        ("login", "alice"),
        ("logout", "alice"),
    ]
    entry = AuditEvent.objects.get(kind="login")
    assert (entry.address, entry.by) == ("192.0.2.7", alice)
    assert entry.request_id


def test_a_lock_out_is_recorded(alice: User, client: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 1
    log_in(client)
    assert ("locked_out", "alice") in [row[:2] for row in trail()]


def test_guesses_during_a_lock_out_do_not_fill_the_trail(alice: User, client: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 1
    log_in(client)
    once = trail()
    for _ in range(3):
        assert log_in(client) == 429
    assert trail() == once
    log_in(client, REMOTE_ADDR="192.0.2.99")
    assert len(trail()) == 2 * len(once)
    AuditEvent.objects.update(at=timezone.now() - settings.AXES_COOLOFF_TIME)
    log_in(client)
    assert len(trail()) > 2 * len(once)


def test_changes_of_rights_are_recorded_with_who_made_them(alice: User, admin_client: Client) -> None:
    group = Group.objects.create(name="night shift")
    permission = Permission.objects.get(codename="view_ticket")
    form = {
        "username": "alice",
        "is_active": "on",
        "is_superuser": "on",
        "groups": [group.pk],
        "user_permissions": [permission.pk],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00",
    }
    answer = admin_client.post(f"/admin/auth/user/{alice.pk}/change/", form)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    rows = trail()
    assert ("account", "alice", "is_staff: False, is_superuser: True") in rows
    assert ("permissions", "alice", "added night shift") in rows
    assert ("permissions", "alice", f"added {permission}") in rows
    makers = AuditEvent.objects.filter(person="alice").values_list("by__username", flat=True)
    assert set(makers) == {"admin"}


def test_rights_of_a_group_and_passwords_are_recorded_too(alice: User) -> None:
    group = Group.objects.create(name="night shift")
    group.permissions.add(Permission.objects.get(codename="view_ticket"))
    group.permissions.clear()
    alice.set_password("another long password")
    alice.save()
    alice.delete()
    assert [row[0] for row in trail()] == ["permissions", "permissions", "password", "account"]
    assert "another long password" not in str(trail())


def test_members_of_a_deleted_group_are_recorded(alice: User) -> None:
    group = Group.objects.create(name="night shift")
    alice.groups.add(group)
    group.delete()
    assert trail()[-1] == ("permissions", "night shift", "deleted with the members alice")


def test_tokens_are_recorded_without_their_secret(alice: User, admin_client: Client) -> None:
    soon = f"{timezone.now() + timedelta(days=2):%Y-%m-%d}"
    fields = {"name": "nagios", "user": alice.pk, "expires_at_0": soon, "expires_at_1": "12:00"}
    admin_client.post("/admin/tickets_api/apitoken/add/", fields)
    token = ApiToken.objects.get()
    admin_client.post("/admin/tickets_api/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    token.note_use()
    rows = AuditEvent.objects.filter(kind="token").order_by("pk")
    assert list(rows.values_list("person", "detail", "by__username")) == [
        ("alice", "made nagios", "admin"),
        ("alice", "revoked nagios", "admin"),
    ]


def test_the_trail_speaks_the_language_of_its_reader(alice: User, admin_client: Client) -> None:
    alice.groups.add(Group.objects.create(name="night shift"))
    User.objects.create_user("bob", is_staff=True)
    AuditEvent.objects.create(kind="login_failed", person="(unknown account)")
    Group.objects.get(name="night shift").delete()
    ApiToken.issue(user=alice, name="nagios", by=alice)
    html = admin_client.get("/admin/helpdesk/auditevent/", headers={"Accept-Language": "de"}).content.decode()
    assert "hinzugefügt: night shift" in html
    assert "erstellt, aktiv, darf sich in der Verwaltung anmelden" in html
    assert "(unbekanntes Konto)" in html
    for raw in ("is_staff", "True", "added", "unknown", "deleted"):
        assert raw not in html


def test_failed_logins_can_be_forgiven_in_the_admin(
    alice: User, client: Client, admin_client: Client, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    stranger = Client()
    assert [log_in(stranger) for _ in range(2)] == [200, 429]
    page = "/admin/axes/accessattempt/"
    assert admin_client.get(page).status_code == 200
    attempt = AccessAttempt.objects.get()
    assert admin_client.get(f"{page}{attempt.pk}/change/").status_code == 200
    admin_client.post(f"{page}{attempt.pk}/delete/", {"post": "yes"})
    assert log_in(stranger, password=PASSWORD) == 302


def test_the_trail_cannot_be_edited(alice: User, admin_client: Client) -> None:
    entry = AuditEvent.objects.create(kind="login", person="alice")
    with pytest.raises(TypeError):
        entry.save()
    with pytest.raises(TypeError):
        entry.delete()
    page = f"/admin/helpdesk/auditevent/{entry.pk}/"
    assert admin_client.post(f"{page}change/", {"person": "bob"}).status_code == 403
    assert admin_client.post(f"{page}delete/", {"post": "yes"}).status_code == 403
    assert admin_client.get("/admin/helpdesk/auditevent/").status_code == 200


# --- the document ---


def test_the_documented_tests_exist() -> None:
    cited = re.findall(r"`(tests/\S+)::(test_\w+)`", (ROOT / "docs" / "security.md").read_text())
    assert len(cited) > 30
    missing = [f"{path}::{name}" for path, name in cited if f"def {name}(" not in (ROOT / path).read_text()]
    assert not missing
