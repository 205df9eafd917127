"""A wish of the person that cannot be granted now, with the sentence that says why."""

from __future__ import annotations

from datetime import datetime

from django.utils.functional import Promise


class Refused(Exception):
    """`sentence` is lazily translated; `until` is when it goes on, where a limit is the reason."""

    def __init__(self, sentence: str | Promise, *, until: datetime | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.until = until
