"""`manage.py vector_index create|drop|status`: the opt-in approximate index."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from retrieval import second_stage
from retrieval.embedders import SearchOff, get_embedder, model_key


class Command(BaseCommand):
    help = "Speeds up search over very many tickets by an approximate index, and measures its recall."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["create", "drop", "status"])
        parser.add_argument(
            "--model", help="the stored model, e.g. voyage-4:1024 (default: the configured one)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        model = options["model"] or self._configured()
        try:
            getattr(self, f"_{options['action']}")(model)
        except second_stage.NoSuchModel:
            raise CommandError(f"No vectors of {model} are stored: run embed_worker first.") from None

    def _configured(self) -> str:
        try:
            return model_key(get_embedder())
        except SearchOff as off:
            raise CommandError(str(off)) from off

    def _create(self, model: str) -> None:
        recall = second_stage.create(model)
        self.stdout.write(f"Index of {model}: it finds {recall:.1%} of the exact top {second_stage.TOP}.")
        if recall < second_stage.LEAST_RECALL:
            self.stdout.write(
                f"That is less than {second_stage.LEAST_RECALL:.0%}: searches stay exact; drop the index."
            )

    def _drop(self, model: str) -> None:
        second_stage.drop(model)
        self.stdout.write(f"Searches over {model} are exact.")

    def _status(self, model: str) -> None:
        found = second_stage.status(model)
        state = found.state
        if not found.exists:
            self.stdout.write(f"{model}: no index, searches are exact over {state.indexed} vectors.")
            return
        if not found.valid:
            self.stdout.write(f"{model}: an index that was never finished; create or drop it.")
            return
        use = "in use" if state.second_stage else "not in use"
        recall = (
            "not measured"
            if state.recall is None
            else f"{state.recall:.1%} of the exact top {second_stage.TOP}"
        )
        self.stdout.write(f"{model}: index of {found.size / 1e6:.0f} MB over {state.indexed} vectors, {use}.")
        measured = (
            f", measured {state.recall_measured_at:%Y-%m-%d %H:%M} UTC" if state.recall_measured_at else ""
        )
        self.stdout.write(f"Recall: {recall}{measured}.")
