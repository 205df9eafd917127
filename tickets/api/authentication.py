"""`Authorization: Bearer hd_…`, or the session of a browser that is logged in."""

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _
from rest_framework import authentication
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from .models import ApiToken

SCHEME = "Bearer"


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _space, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        token = ApiToken.objects.with_secret(secret.strip())
        if token is None or not token.is_usable:
            # One sentence for all reasons: it tells a stranger nothing about the tokens there are.
            raise AuthenticationFailed(_("This token is unknown, has expired or was revoked."))
        token.note_use()
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class SessionAuthentication(authentication.SessionAuthentication):
    def enforce_csrf(self, request: Request) -> None:
        """The framework gives its reason in English only, and one that means little to people."""
        try:
            super().enforce_csrf(request)
        except PermissionDenied as error:
            raise PermissionDenied(
                _("The CSRF token of the session is missing or wrong: send it as X-CSRFToken.")
            ) from error
