"""What is measured and kept of a turn while it runs, written into its row at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from assistant.endings import Ending
from assistant.history import Block
from assistant.models import Turn


@dataclass(slots=True)
class Record:
    status: str = Turn.Status.INTERRUPTED
    error: str = "stopped"
    error_params: dict[str, Any] = field(default_factory=dict)
    stop_reason: str = ""
    texts: list[str] = field(default_factory=list)  # of finished messages
    partial: str = ""  # visible text of the message that is coming in
    last_message: list[Block] = field(default_factory=list)  # ends the turn, and is stored with its end
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    first_token_ms: int | None = None
    total_ms: int = 0
    model_ms: float = 0.0
    tools_ms: float = 0.0
    messages_left_out: int = 0

    def end(self, ending: Ending) -> None:
        self.status, self.error, self.error_params = ending.status, ending.error, ending.params

    def keep_text(self, content: list[Block]) -> None:
        """A message is finished and stored: its text is part of the answer now."""
        text = "".join(block["text"] for block in content if block.get("type") == "text")
        if text.strip():
            self.texts.append(text.strip())
        self.partial = ""

    def fill(self, turn: Turn) -> None:
        turn.answer = "\n\n".join(self.texts)
        turn.partial = self.partial
        turn.stop_reason = self.stop_reason[:60]
        turn.steps = self.steps
        turn.tokens_in, turn.tokens_out, turn.tokens_cached = (
            self.tokens_in,
            self.tokens_out,
            self.tokens_cached,
        )
        turn.first_token_ms, turn.total_ms = self.first_token_ms, self.total_ms
        turn.model_ms, turn.tools_ms = round(self.model_ms), round(self.tools_ms)
        turn.rest_ms = max(self.total_ms - turn.model_ms - turn.tools_ms, 0)
        turn.messages_left_out = self.messages_left_out


class Stopwatch:
    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def total_ms(self) -> int:
        return round((time.perf_counter() - self._started) * 1000)

    @contextmanager
    def model(self, record: Record) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            record.model_ms += (time.perf_counter() - started) * 1000

    @contextmanager
    def tools(self, record: Record) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            record.tools_ms += (time.perf_counter() - started) * 1000
