"""So many requests a minute for each token, or for each person in a session."""

import time
from math import ceil
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from .models import MINUTE, ApiToken, RequestRate


class RateThrottle(BaseThrottle):
    def allow_request(self, request: Request, view: Any) -> bool:
        limit = settings.API_REQUESTS_PER_MINUTE
        return limit == 0 or RequestRate.admit(self._key(request), limit)

    def wait(self) -> float:
        """Seconds until the running minute is over, when the window has surely moved on."""
        return ceil(MINUTE - time.time() % MINUTE)

    @staticmethod
    def _key(request: Request) -> str:
        if isinstance(request.auth, ApiToken):
            return f"token:{request.auth.pk}"
        return f"user:{request.user.pk}"
