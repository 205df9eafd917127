"""A tool call that cannot be carried out, told to the model in a sentence it can act on."""

from __future__ import annotations

from typing import Any


class ToolError(Exception):
    """`sentence` is English and safe; `code` is stable, for the log; `data` is what else the model needs."""

    def __init__(self, sentence: str, code: str = "invalid", **data: Any) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.data = data
