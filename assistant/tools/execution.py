"""Running a tool call in two phases: searches first, then the rest inside the transaction of the step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import translation

from assistant.tools import finding, tickets
from assistant.tools.arguments import checked
from assistant.tools.errors import ToolError
from assistant.tools.results import Result, failure
from assistant.tools.scope import Scope
from retrieval.results import SearchOutcome

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    run: Callable[[Scope, dict[str, Any], SearchOutcome | None], Result]
    search: Callable[[Scope, dict[str, Any]], SearchOutcome] | None = None


TOOLS: dict[str, Tool] = {
    "find_similar_tickets": Tool(finding.run, finding.search),
    "create_ticket": Tool(tickets.create_ticket, tickets.search_own_text),
    "update_ticket": Tool(tickets.update_ticket),
    "get_ticket": Tool(tickets.get_ticket),
    "list_tickets": Tool(tickets.list_tickets),
    "add_comment": Tool(tickets.add_comment),
}

INTERNAL = (
    "This call failed because of a fault inside the helpdesk; nothing was changed by it. Tell the person, "
    "and do not repeat it more than once."
)


@dataclass(slots=True)
class Call:
    """One tool use of the model, through both phases. Whatever goes wrong is a `result` for the model."""

    tool_use_id: str
    name: str
    input: Any
    arguments: dict[str, Any] | None = None
    outcome: SearchOutcome | None = None
    result: Result | None = None
    milliseconds: float = 0.0

    @property
    def needs_search(self) -> bool:
        return self.result is None and self.name in TOOLS and TOOLS[self.name].search is not None

    def check(self) -> None:
        """Before anything else: are the arguments what the schema and our bounds allow?"""
        if self.result is None:
            self._guarded(self._check)

    def search(self, scope: Scope) -> None:
        """Phase one, outside any transaction; may wait for the network."""
        self._guarded(self._search, scope)

    def execute(self, scope: Scope) -> Result:
        """Phase two, inside the transaction of the step; a failing tool takes back only its own work."""
        if self.result is None:
            self._guarded(self._execute, scope)
        assert self.result is not None
        return self.result

    def _check(self) -> None:
        self.arguments = checked(self.name, self.input)

    def _search(self, scope: Scope) -> None:
        search = TOOLS[self.name].search
        assert search is not None
        assert self.arguments is not None
        self.outcome = search(scope, self.arguments)

    def _execute(self, scope: Scope) -> None:
        assert self.arguments is not None
        # What the model reads is English, whatever the person reads.
        with translation.override("en"), transaction.atomic():
            self.result = TOOLS[self.name].run(scope, self.arguments, self.outcome)

    def _guarded(self, phase: Callable[..., None], *args: Any) -> None:
        started = time.perf_counter()
        try:
            phase(*args)
        except ToolError as error:
            self.result = failure(error)
        except ValidationError as error:
            with translation.override("en"):
                self.result = failure(ToolError(tickets.sentences(error)))
        except Exception:
            log.exception("tool %s failed", self.name if self.name in TOOLS else "(unknown)")
            self.result = failure(ToolError(INTERNAL, "internal"))
        self.milliseconds += (time.perf_counter() - started) * 1000
