"""Where a request comes from, and what somebody sees who has guessed too many passwords."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def client_address(request: HttpRequest) -> str:
    """The address that the outermost of our own proxies saw.

    Everything further left in X-Forwarded-For was written by the client itself and proves nothing.
    """
    direct: str = request.META.get("REMOTE_ADDR", "")
    if not settings.TRUSTED_PROXIES:
        return direct
    hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if hop.strip()]
    return hops[-settings.TRUSTED_PROXIES] if len(hops) >= settings.TRUSTED_PROXIES else direct


def locked_out(request: HttpRequest, *_ignored: Any) -> HttpResponse:
    """django-axes calls this instead of trying the login; its other arguments differ from case to case."""
    minutes = settings.LOGIN_LOCK_MINUTES
    response = render(request, "registration/locked.html", {"minutes": minutes}, status=429)
    response.headers["Retry-After"] = str(60 * minutes)
    return response
