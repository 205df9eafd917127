"""Dates in the time zone of the person's browser, which names it in a cookie (static/helpdesk/zone.js)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware

COOKIE = "timezone"

View = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def browser_time_zone(get_response: View) -> View:
    """Without the cookie, or with one that names no zone, dates are in TIME_ZONE."""

    async def answer_async(request: HttpRequest) -> Any:
        # Not taken back: what is streamed is written after this has returned, in the same context, which
        # belongs to this request alone.
        _activate(_named(request))
        return await get_response(request)

    def answer(request: HttpRequest) -> Any:
        with timezone.override(_named(request)):
            return get_response(request)

    return answer_async if iscoroutinefunction(get_response) else answer


def _activate(zone: ZoneInfo | None) -> None:
    if zone is None:
        timezone.deactivate()
    else:
        timezone.activate(zone)


def _named(request: HttpRequest) -> ZoneInfo | None:
    name = request.COOKIES.get(COOKIE, "")
    return ZoneInfo(name) if name in _zones() else None


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
