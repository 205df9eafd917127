"""`Idempotency-Key`: a request that is sent again gets the same answer, and nothing is done twice.

A key belongs to one person and is kept for 24 hours. Errors are not kept: nothing was done, so that the
corrected request may use the same key.
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import cast

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from .models import IdempotencyKey
from .problems import InvalidHeader, KeyReused

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_HEADERS = ("Location", "ETag")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def idempotent(request: Request, act: Callable[[], Response]) -> Response:
    """The response of `act()`, or the one it gave when the same request came before.

    The key is claimed by inserting it in the transaction of the deed: whoever sends it at the same moment
    waits at the unique index until the first is through, and then gets its answer.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not _KEY.fullmatch(key):
        raise InvalidHeader({HEADER: _("Send 1 to 255 visible ASCII characters without spaces.")})
    with transaction.atomic():
        claim, is_new = _claim(request, key)
        if not is_new:
            return _replay(claim, request)
        response = act()
        _keep(claim, response)
    return response


def _claim(request: Request, key: str) -> tuple[IdempotencyKey, bool]:
    IdempotencyKey.forget_old()
    return IdempotencyKey.objects.get_or_create(
        user=cast(User, request.user), key=key, defaults={"fingerprint": _fingerprint(request)}
    )


def _fingerprint(request: Request) -> str:
    """The same for the same JSON, however it is spaced and in whatever order its members stand."""
    body = json.dumps(request.data, sort_keys=True)
    return hashlib.sha256(f"{request.method} {request.path}\n{body}".encode()).hexdigest()


def _keep(claim: IdempotencyKey, response: Response) -> None:
    claim.status, claim.body = response.status_code, response.data
    claim.headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    claim.save(update_fields=["status", "body", "headers"])


def _replay(claim: IdempotencyKey, request: Request) -> Response:
    if claim.fingerprint != _fingerprint(request):
        raise KeyReused()
    return Response(claim.body, claim.status, headers={**claim.headers, REPLAYED: "true"})
