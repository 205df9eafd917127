"""Dates in the time zone of the person's browser, which names it in a cookie (static/helpdesk/zone.js)."""

from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

COOKIE = "timezone"


def browser_time_zone(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Without the cookie, or with one that names no zone, dates are in TIME_ZONE.

    Not taken back afterwards, as with the language: what is streamed is written after this has returned.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        name = request.COOKIES.get(COOKIE, "")
        if name in _zones():
            timezone.activate(ZoneInfo(name))
        else:
            timezone.deactivate()
        return get_response(request)

    return answer


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
