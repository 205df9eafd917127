"""Moments as people read them, in the language that is active when the page is rendered."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import lazy


def _clock(moment: datetime) -> str:
    """Time of day; with the date unless it is today."""
    local = timezone.localtime(moment)
    today = local.date() == timezone.localdate()
    return date_format(local, "TIME_FORMAT" if today else "SHORT_DATETIME_FORMAT")


clock = lazy(_clock, str)
