"""A wish of the person that cannot be granted now, with the sentence that says why."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Refused(Exception):
    """`sentence` is lazily translated; `until` is when it goes on, where a limit is the reason.

    `params` are what the sentence names, as plain values that can be stored.
    """

    def __init__(
        self, sentence: StrOrPromise, *, until: datetime | None = None, params: dict[str, Any] | None = None
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.until = until
        self.params = params or {}
