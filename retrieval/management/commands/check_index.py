"""`manage.py check_index [--json]`: whether the search still works; exit code 1 if something failed."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from retrieval.health import Check, State, run
from retrieval.models import IndexState


class Command(BaseCommand):
    help = "Measures whether the search still works. Ends with 1 if a line failed, for cron and monitors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="the lines as JSON on standard output")
        parser.add_argument(
            "--no-probes", action="store_true", help="leave out what asks the embedding provider"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        IndexState.objects.exists()  # an empty database is one mistake, not one of every line
        lines = run(probes=not options["no_probes"])
        if options["json"]:
            found = {"status": worst(lines).value, "checks": [line.as_json() for line in lines]}
            self.stdout.write(json.dumps(found, ensure_ascii=False, indent=1))
        else:
            self._print(lines)
        if worst(lines) == State.FAIL:
            sys.exit(1)

    def _print(self, lines: list[Check]) -> None:
        width = max(len(line.label) for line in lines)
        for line in lines:
            limit = f"  (limit: {line.limit})" if line.limit else ""
            self.stdout.write(f"{line.state:<4}  {line.label:<{width}}  {line.figure}{limit}")
            if line.advice:
                self.stdout.write(f"      {'':<{width}}  → {line.advice}")


def worst(lines: list[Check]) -> State:
    states = {line.state for line in lines}
    return next((state for state in (State.FAIL, State.WARN) if state in states), State.OK)
