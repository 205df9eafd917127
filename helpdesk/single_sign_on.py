"""Login by an OpenID Connect provider, where OIDC_ISSUER names one.

The library does the code flow with state, nonce and PKCE. Here stands what it leaves to its user: where the
provider's addresses are, that a token was made for us, and who may enter as what.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jwt
import requests
import structlog
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import Group, User
from django.contrib.auth.views import LoginView
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from helpdesk.models import Identity
from tickets.connections import release_connections

log = structlog.get_logger("helpdesk.single_sign_on")

ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
# Whatever a provider that is away, or answers nonsense, makes the libraries raise.
FAILURES = (requests.RequestException, jwt.PyJWTError, SuspiciousOperation, KeyError, TypeError, ValueError)
CLOCKS_DIFFER_SECONDS = 60
REFUSAL = "helpdesk.single_sign_on.refusal"  # in META, from the backend to the page


class Refused(Exception):
    """The provider vouches for the person, who may not enter all the same. The text is one sentence."""


@lru_cache(maxsize=4)
def discovered(issuer: str) -> dict[str, Any]:
    """What the provider publishes about itself. A failure is not kept, so that the next login asks again."""
    response = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=settings.OIDC_TIMEOUT)
    response.raise_for_status()
    document: dict[str, Any] = response.json()
    if document["issuer"].rstrip("/") != issuer:
        raise ValueError(f"{issuer} calls itself {document['issuer']}")
    return document


def setting(name: str, *default: Any) -> Any:
    """The library's way to its settings: the addresses of the provider are what it publishes."""
    if name in ENDPOINTS:
        return discovered(settings.OIDC_ISSUER)[ENDPOINTS[name]]
    return getattr(settings, name, *default)


class Backend(OIDCAuthenticationBackend):
    get_settings = staticmethod(setting)

    def __init__(self) -> None:
        """Asks for nothing yet: Django makes one for each request of somebody who has come in by it."""
        self.UserModel = User

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User | None:
        if request is None or "nonce" not in credentials:
            return None  # a login by password
        release_connections()
        try:
            super().__init__()
            user: User | None = super().authenticate(request, **credentials)
        except Refused as refusal:
            request.META[REFUSAL] = str(refusal)
            log.warning("refused", reason=str(refusal))
            return None
        except FAILURES as error:
            log.warning("failed", error=type(error).__name__, reason=str(error)[:300])
            return None
        return user

    def get_payload_data(self, token: str, key: Any) -> dict[str, Any]:
        """The claims, if this provider signed them, for us, and they still hold."""
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[settings.OIDC_RP_SIGN_ALGO],
            audience=settings.OIDC_RP_CLIENT_ID,
            issuer=discovered(settings.OIDC_ISSUER)["issuer"],
            leeway=CLOCKS_DIFFER_SECONDS,
            options={"require": ["exp", "aud", "iss", "sub"]},
        )
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        claims = payload | self.get_userinfo(access_token, id_token, payload)
        if claims["sub"] != payload["sub"]:
            raise SuspiciousOperation("the provider's answers speak of two people")
        roles = _roles(claims)
        if not roles:
            raise Refused(_("Your account may not enter here. Ask your administrator for access."))
        with transaction.atomic():
            user = _account(claims)
            _admit(user, roles)
        return user


def _roles(claims: dict[str, Any]) -> set[str]:
    """Our groups for the provider's groups, by OIDC_GROUPS; none: the person may not enter."""
    theirs = claims.get(settings.OIDC_GROUPS_CLAIM) or []
    theirs = [theirs] if isinstance(theirs, str) else theirs
    return {settings.OIDC_GROUPS[group] for group in theirs if group in settings.OIDC_GROUPS}


def _account(claims: dict[str, Any]) -> User:
    """The account of this subject. Names and addresses can change hands, the subject cannot; so a name only
    leads to an account at the first login, and never to one that has a password of its own.
    """
    issuer, subject = settings.OIDC_ISSUER, str(claims["sub"])
    known = Identity.objects.select_related("user").filter(issuer=issuer, subject=subject).first()
    if known:
        return known.user
    name = str(claims.get(settings.OIDC_USERNAME_CLAIM) or "").strip()
    if not name or len(name) > 150:
        raise Refused(
            _("The login service sent no user name (%(claim)s).") % {"claim": settings.OIDC_USERNAME_CLAIM}
        )
    user = User.objects.filter(username__iexact=name).first() or User(username=name)
    if user.pk and (user.has_usable_password() or user.is_superuser or hasattr(user, "identity")):
        raise Refused(
            _("There is another account with the name %(name)s. Ask your administrator.") % {"name": name}
        )
    if not user.pk:
        user.set_unusable_password()
        user.email = str(claims.get("email") or "")[:254]
        user.first_name = str(claims.get("given_name") or "")[:150]
        user.last_name = str(claims.get("family_name") or "")[:150]
        user.save()
    Identity.objects.create(user=user, issuer=issuer, subject=subject)
    return user


def _admit(user: User, roles: set[str]) -> None:
    """Staff, with those of the mapped groups that the provider names now; other groups stay as they are."""
    if not user.is_active:
        raise Refused(_("Your account may not enter here. Ask your administrator for access."))
    if not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
    lost = set(settings.OIDC_GROUPS.values()) - roles
    present = set(user.groups.values_list("name", flat=True))
    if present & lost:
        user.groups.remove(*Group.objects.filter(name__in=present & lost))
    if roles - present:
        user.groups.add(*Group.objects.filter(name__in=roles - present))


class Login(LoginView):
    """By name and password, with a button for the provider where there is one."""

    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(**context) | {"single_sign_on": settings.OIDC_NAME}


class Begin(OIDCAuthenticationRequestView):
    get_settings = staticmethod(setting)

    def __init__(self, **options: Any) -> None:
        """The library asks for the provider's address here, outside of what `get()` could catch."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if not settings.OIDC_ISSUER:
            raise Http404
        release_connections()
        try:
            super().__init__()
            response: HttpResponseBase = super().get(request)
        except FAILURES as error:
            log.warning("failed", error=type(error).__name__, reason=str(error)[:300])
            return _login_page(request, _("The login service cannot be reached at the moment."), status=503)
        return response


class Callback(OIDCAuthenticationCallbackView):
    get_settings = staticmethod(setting)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        if not settings.OIDC_ISSUER:
            raise Http404
        try:
            response: HttpResponseBase = super().get(request)
        except SuspiciousOperation as error:  # a state that this browser never got
            log.warning("failed", error=type(error).__name__, reason=str(error)[:300])
            return self.login_failure()
        return response

    def login_failure(self) -> HttpResponse:
        reason = self.request.META.get(REFUSAL)
        return _login_page(
            self.request, reason or _("That login did not work. Please try again."), status=403
        )


def _login_page(request: HttpRequest, refusal: str, *, status: int) -> HttpResponse:
    context = {"form": AuthenticationForm(), "single_sign_on": settings.OIDC_NAME, "refusal": refusal}
    return render(request, "registration/login.html", context, status=status)
