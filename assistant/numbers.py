"""Whole numbers as people read them, in the language that is active when the page is rendered."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.functional import lazy


def grouped(number: float) -> str:
    """With separators: 100,002, in German 100.002."""
    return number_format(round(number), use_l10n=True, force_grouping=True)


lazy_grouped = lazy(grouped, str)
