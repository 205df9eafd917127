"""Functions in the pools of threads."""

import pytest
from django.utils import timezone, translation

from assistant.db import run_db, run_search


def as_seen() -> tuple[str | None, str]:
    return translation.get_language(), timezone.get_current_timezone_name()


@pytest.mark.django_db
@pytest.mark.parametrize("run", [run_db, run_search])
async def test_language_and_time_zone_go_along(run: object) -> None:
    with translation.override("de"), timezone.override("Europe/Berlin"):
        assert await run(as_seen) == ("de", "Europe/Berlin")  # type: ignore[operator]
    with translation.override("en"), timezone.override("UTC"):
        assert await run(as_seen) == ("en", "UTC")  # type: ignore[operator]
