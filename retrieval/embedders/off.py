"""The provider `off`: semantic search is switched off, and says so."""

from __future__ import annotations

from typing import NoReturn

from django.utils.translation import gettext as _

from .errors import SearchOff


def from_settings() -> NoReturn:
    raise SearchOff(
        _(
            "Search by meaning is switched off here. "
            "Set VOYAGE_API_KEY, or EMBEDDING_PROVIDER=local for the model that needs no key."
        )
    )


def for_model(name: str, dimensions: int) -> None:
    return None
