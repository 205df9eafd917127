"""When tickets were created: a year, a month, a day.

Django's date hierarchy asks the database for all distinct dates, which reads the whole table. A calendar
needs only its two ends.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Max, Min
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dates import MONTHS
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .models import Ticket

LAST_DAYS = {"today": 0, "week": 6, "month": 29}
DATE = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?")


class CreatedFilter(admin.SimpleListFilter):
    title = _("created")
    parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        fixed = [
            ("today", gettext("Today")),
            ("week", gettext("Last 7 days")),
            ("month", gettext("Last 30 days")),
        ]
        chosen = DATE.fullmatch(self.value() or "")
        return fixed + list(_around(chosen[0]) if chosen and _span(chosen[0]) else _years())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value() or ""
        span = _last_days(LAST_DAYS[value]) if value in LAST_DAYS else _span(value)
        return queryset.filter(created_at__gte=span[0], created_at__lt=span[1]) if span else queryset


def _last_days(days: int) -> tuple[datetime, datetime]:
    """Today and the `days` before, in the person's time zone."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=days), midnight + timedelta(days=1)


def _span(value: str) -> tuple[datetime, datetime] | None:
    """Begin and end of "2026", "2026-11" or "2026-11-30"; None for what is no date."""
    found = DATE.fullmatch(value)
    if found is None:
        return None
    year, month, day = (int(part) if part else None for part in found.groups())
    try:
        begin = datetime(year or 0, month or 1, day or 1)
        end = begin + timedelta(days=1) if day else _after(begin, whole_year=month is None)
        return timezone.make_aware(begin), timezone.make_aware(end)
    except (ValueError, OverflowError):
        return None


def _after(begin: datetime, *, whole_year: bool) -> datetime:
    if whole_year:
        return begin.replace(year=begin.year + 1)
    return (begin + timedelta(days=32)).replace(day=1)


def _years() -> Iterator[tuple[str, str]]:
    """Every year from the first ticket to the last, the latest first; two looks into an index."""
    ends = Ticket.objects.aggregate(first=Min("created_at"), last=Max("created_at"))
    if ends["first"] is None:
        return
    for year in range(timezone.localtime(ends["last"]).year, timezone.localtime(ends["first"]).year - 1, -1):
        yield str(year), str(year)


def _around(value: str) -> Iterator[tuple[str, str]]:
    """The way back up, and what the chosen year or month consists of."""
    year = value[:4]
    yield year, year
    if len(value) == 4:
        for number, name in MONTHS.items():
            yield f"{year}-{number:02}", str(name)
        return
    month = value[:7]
    yield month, f"{MONTHS[int(value[5:7])]} {year}"
    for day in range(1, calendar.monthrange(int(year), int(value[5:7]))[1] + 1):
        moment = datetime(int(year), int(value[5:7]), day)
        yield f"{month}-{day:02}", date_format(moment, "SHORT_DATE_FORMAT")
