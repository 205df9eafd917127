"""`manage.py evaluate_retrieval FILE`: how good the search is on labelled tickets and queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from retrieval.embedders import EmbeddingError, SearchOff, get_embedder
from retrieval.evaluation import BadFile, evaluate, read

COLUMNS = ("recall@1", "recall@5", "recall@10", "mrr")


class Command(BaseCommand):
    help = "Measures the search on a file of labelled tickets and queries. Real tickets stay untouched."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            type=Path,
            help="JSON {tickets, queries}, or JSON Lines {id, lang, original, english}; may be gzipped",
        )
        parser.add_argument("--json", action="store_true", help="write the measures as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            measures = evaluate(read(options["file"]), get_embedder(), _progress)
        except (BadFile, SearchOff, EmbeddingError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(measures, indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_table(measures)))


def _progress(things: Sequence[Any], label: str) -> Iterable[Any]:
    return tqdm(things, desc=label, file=sys.stderr, mininterval=1)


def _table(measures: dict[str, Any]) -> Iterator[str]:
    """Vectors alone beside the product's own ranking, overall and by group."""
    floor = "none" if measures["floor"] is None else f"{measures['floor']:.3f}"
    yield f"{measures['model']}, {measures['tickets']} tickets, floor {floor}"
    yield ""
    yield f"{'':24}{'queries':>8}   {'vectors alone':^32}   {'search':^32}"
    yield f"{'':24}{'':>8}   {_headings()}   {_headings()}"
    vectors, search = measures["vectors"], measures["search"]
    yield _row("overall", vectors["overall"], search["overall"])
    for group in ("by_kind", "by_direction"):
        for name, of_vectors in vectors[group].items():
            yield _row(f"  {name}", of_vectors, search[group][name])
    none = vectors["none"]
    if none["queries"]:
        below = (
            f"below the floor: {none['below_floor']} by vectors, {search['none']['below_floor']} by search"
        )
        yield f"{'without a duplicate':24}{none['queries']:>8}   {below}"


def _headings() -> str:
    return "".join(f"{name.replace('recall', 'R').upper():>8}" for name in COLUMNS)


def _row(name: str, of_vectors: dict[str, float], of_search: dict[str, float]) -> str:
    return f"{name:24}{of_vectors['queries']:>8}   {_numbers(of_vectors)}   {_numbers(of_search)}"


def _numbers(of: dict[str, float]) -> str:
    recalls = "".join(f"{of[name]:>8.1%}" for name in COLUMNS[:-1])
    return f"{recalls}{of['mrr']:>8.3f}"
