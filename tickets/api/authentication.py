"""`Authorization: Bearer hd_…`"""

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
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
