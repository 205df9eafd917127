"""A small OpenID Connect provider over real HTTP: discovery, authorize, token, keys and userinfo, RS256.

    with OidcProvider() as provider:
        settings.OIDC_ISSUER = provider.issuer
        provider.person = {"sub": "1", "preferred_username": "carol", "groups": ["helpdesk-agents"]}
        provider.claims["nonce"] = "another"   # what it says in the token instead

It checks what a real one checks: the client's secret, the address to return to, and PKCE.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "helpdesk", "a-long-secret"


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


class OidcProvider:
    def __init__(self) -> None:
        self.published_key = self.signing_key = _key()
        self.person: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}  # of the token, over the right ones
        self.userinfo: dict[str, Any] = {}  # the same for userinfo
        self.codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(_Handler):
            def answer(self) -> None:
                provider.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> OidcProvider:
        threading.Thread(target=self.server.serve_forever, name="oidc-provider", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()

    def sign_with_another_key(self) -> None:
        self.signing_key = _key()

    def answer(self, request: _Handler) -> None:
        path, query = request.address
        match path:
            case "/.well-known/openid-configuration":
                request.send_json(self.discovery())
            case "/authorize":
                request.redirect(self.authorize(query))
            case "/token":
                request.send_json(self.token(request.form))
            case "/keys":
                request.send_json({"keys": [self.public_key()]})
            case "/userinfo":
                assert request.headers["Authorization"] == "Bearer an-access-token"
                request.send_json(self.person | self.userinfo)

    def discovery(self) -> dict[str, str]:
        names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        endpoints = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", **endpoints}

    def authorize(self, query: dict[str, str]) -> str:
        """The person agrees at once; back to the site with a code."""
        assert (query["client_id"], query["response_type"]) == (CLIENT_ID, "code")
        code = secrets.token_urlsafe()
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, str]:
        query = self.codes.pop(form["code"])  # once
        assert (form["client_id"], form["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        assert form["redirect_uri"] == query["redirect_uri"]
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == query["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": query["nonce"]}
        token = jwt.encode(
            claims | {"sub": self.person["sub"]} | self.claims, self.signing_key, "RS256", {"kid": "k"}
        )
        return {"access_token": "an-access-token", "id_token": token, "token_type": "Bearer"}

    def public_key(self) -> dict[str, str]:
        numbers: dict[str, str] = jwt.algorithms.RSAAlgorithm.to_jwk(
            self.published_key.public_key(), as_dict=True
        )
        return numbers | {"kid": "k", "alg": "RS256", "use": "sig"}


class _Handler(BaseHTTPRequestHandler):
    def answer(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        try:
            self.answer()
        except (AssertionError, KeyError):
            self.send_json({"error": "invalid_request"}, status=400)

    def do_POST(self) -> None:
        self.do_GET()

    @property
    def address(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        return parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}

    @property
    def form(self) -> dict[str, str]:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        return {name: values[0] for name, values in parse_qs(body).items()}

    def redirect(self, location: str) -> None:
        self.send_response(302)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
