"""The whole login by an OpenID Connect provider, over HTTP, and everything it must not let in."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from helpdesk import single_sign_on
from helpdesk.models import AuditEvent, Identity
from tests.factories import UserFactory
from tests.fakes.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.settings import TEST_ENVIRONMENT

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
CAROL = {
    "sub": "c-1",
    "preferred_username": "carol",
    "email": "carol@example.com",
    "given_name": "Carol",
    "groups": ["helpdesk-agents", "everybody"],
}


@pytest.fixture
def provider(settings: Settings) -> Iterator[OidcProvider]:
    with OidcProvider() as server:
        server.person = dict(CAROL)
        settings.OIDC_ISSUER = server.issuer
        settings.OIDC_NAME = "Example ID"
        settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
        settings.OIDC_GROUPS = {"helpdesk-agents": "agent", "helpdesk-leads": "supervisor"}
        settings.AUTHENTICATION_BACKENDS = [
            *settings.AUTHENTICATION_BACKENDS,
            "helpdesk.single_sign_on.Backend",
        ]
        yield server
        single_sign_on.discovered.cache_clear()


def begin(client: Client, **query: str) -> str:
    """Press the button and agree at the provider: the address to which that sends the browser back."""
    away = client.get("/login/sso/", query)
    assert away.status_code == 302
    return httpx.get(away["Location"]).headers["Location"]


def log_in(client: Client, **query: str) -> HttpResponse:
    return client.get(begin(client, **query), headers={"Accept-Language": "en"})  # type: ignore[return-value]


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_person_of_a_mapped_group_enters_as_staff(provider: OidcProvider, client: Client) -> None:
    page = client.get("/login/?next=/search/", headers={"Accept-Language": "en"})
    assert "Log in with Example ID" in page.content.decode()
    assert "/login/sso/?next=%2Fsearch%2F" in page.content.decode()
    answer = log_in(client, next="/search/")
    assert (answer.status_code, answer["Location"]) == (302, "/search/")
    carol = User.objects.get(username="carol")
    assert (carol.is_staff, carol.is_superuser, carol.has_usable_password()) == (True, False, False)
    assert (carol.email, carol.first_name) == ("carol@example.com", "Carol")
    assert list(carol.groups.values_list("name", flat=True)) == ["agent"]
    assert client.get("/admin/tickets/ticket/").status_code == 200
    login = AuditEvent.objects.get(kind="login")
    assert (login.person, login.detail) == ("carol", "single sign-on")


def test_groups_follow_the_provider_at_each_login(provider: OidcProvider, client: Client) -> None:
    log_in(client)
    carol = User.objects.get(username="carol")
    carol.groups.add(Group.objects.create(name="given by hand"))
    provider.person |= {"groups": "helpdesk-leads", "preferred_username": "carol.married"}
    log_in(Client())
    assert set(carol.groups.values_list("name", flat=True)) == {"supervisor", "given by hand"}
    assert User.objects.count() == 1


@pytest.mark.parametrize("groups", [[], ["everybody"], None, "agent"])
def test_nobody_enters_without_a_mapped_group(provider: OidcProvider, client: Client, groups: Any) -> None:
    provider.person["groups"] = groups
    answer = log_in(client)
    assert answer.status_code == 403
    assert "Your account may not enter here." in answer.content.decode()
    assert "'unsafe-inline'" not in answer["Content-Security-Policy"]
    assert not User.objects.exists()
    assert AuditEvent.objects.get().kind == "login_failed"


def test_who_lost_the_group_or_is_switched_off_enters_no_more(provider: OidcProvider, client: Client) -> None:
    log_in(client)
    provider.person["groups"] = []
    assert log_in(Client()).status_code == 403
    provider.person["groups"] = ["helpdesk-agents"]
    User.objects.update(is_active=False)
    assert log_in(Client()).status_code == 403


@pytest.mark.parametrize(
    "own", [{"password": "has one"}, {"is_superuser": True}, {"identity_of": "somebody else"}]
)
def test_a_name_alone_takes_over_no_account(provider: OidcProvider, client: Client, own: Any) -> None:
    subject = own.pop("identity_of", None)
    user = UserFactory(username="Carol", **own)
    if "password" not in own:
        user.set_unusable_password()
        user.save()
    if subject:
        Identity.objects.create(user=user, issuer=provider.issuer, subject=subject)
    answer = log_in(client)
    assert answer.status_code == 403
    assert "There is another account with the name carol." in answer.content.decode()
    assert not is_logged_in(client)


def test_an_account_prepared_without_a_password_is_taken(provider: OidcProvider, client: Client) -> None:
    user = UserFactory(username="Carol")
    user.set_unusable_password()
    user.save()
    log_in(client)
    assert client.session["_auth_user_id"] == str(user.pk)


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-client"},
        {"iss": "https://evil.example"},
        {"exp": int(time.time()) - 3_600},
        {"exp": None},
    ],
)
def test_a_token_that_is_not_for_this_login(provider: OidcProvider, client: Client, claims: Any) -> None:
    provider.claims = claims
    answer = log_in(client)
    assert (answer.status_code, is_logged_in(client)) == (403, False)
    assert "That login did not work." in answer.content.decode()


def test_a_token_with_another_signature(provider: OidcProvider, client: Client) -> None:
    provider.sign_with_another_key()
    assert (log_in(client).status_code, is_logged_in(client)) == (403, False)


def test_userinfo_of_somebody_else(provider: OidcProvider, client: Client) -> None:
    provider.userinfo = {"sub": "mallory"}
    assert (log_in(client).status_code, is_logged_in(client)) == (403, False)


def test_a_state_that_this_browser_never_got(provider: OidcProvider, client: Client) -> None:
    elsewhere = begin(Client())
    begin(client)
    assert client.get(elsewhere).status_code == 403
    assert client.get("/login/sso/callback/?error=access_denied&state=x").status_code == 403
    assert not is_logged_in(client)


def test_an_answer_counts_once(provider: OidcProvider, client: Client) -> None:
    back = begin(client)
    assert client.get(back).status_code == 302
    client.logout()
    assert client.get(back).status_code == 403


def test_leads_to_no_foreign_site(provider: OidcProvider, client: Client) -> None:
    assert log_in(client, next="https://evil.example/")["Location"] == "/"


def test_many_refusals_lock_the_address_out(
    provider: OidcProvider, client: Client, settings: Settings
) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    provider.person["groups"] = []
    assert [log_in(client).status_code for _ in range(3)] == [403, 429, 429]


def test_a_provider_that_is_away(provider: OidcProvider, client: Client, settings: Settings) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    answer = client.get("/login/sso/", headers={"Accept-Language": "en"})
    assert answer.status_code == 503
    assert "The login service cannot be reached" in answer.content.decode()


def test_who_is_in_stays_in_while_the_provider_is_away(
    provider: OidcProvider, client: Client, settings: Settings
) -> None:
    log_in(client)
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    assert client.get("/search/").status_code == 200


def test_off_without_an_issuer(client: Client) -> None:
    assert client.get("/login/sso/").status_code == 404
    assert client.get("/login/sso/callback/?code=x&state=y").status_code == 404
    assert "/login/sso/" not in client.get("/login/").content.decode()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"OIDC_ISSUER": "http://id.example.com"}, "OIDC_ISSUER is not an https address"),
        ({"OIDC_CLIENT_SECRET": ""}, "OIDC_CLIENT_SECRET is not set"),
        ({"OIDC_GROUPS": ""}, "OIDC_GROUPS is not set, so that nobody could enter"),
        ({"OIDC_GROUPS": "agents"}, "OIDC_GROUPS has a part without '='"),
        ({"OIDC_SIGN_ALGORITHM": "none"}, "OIDC_SIGN_ALGORITHM is 'none'"),
    ],
)
def test_settings_that_cannot_work(changed: dict[str, str], sentence: str) -> None:
    good = {
        "OIDC_ISSUER": "https://id.example.com",
        "OIDC_CLIENT_ID": "helpdesk",
        "OIDC_CLIENT_SECRET": "s3cret-of-some-length",
        "OIDC_GROUPS": "helpdesk-agents=agent",
    }
    environment = os.environ | TEST_ENVIRONMENT | good | changed
    ran = subprocess.run(
        [sys.executable, "-c", "import helpdesk.settings"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert sentence in ran.stderr
