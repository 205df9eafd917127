import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from tickets.importing import FIELDS, ImportRefused, Options, Rejected, Result, import_tickets


class Command(BaseCommand):
    help = (
        "Creates a ticket for each row of a CSV or JSON Lines file. Bad rows are listed with line and"
        " reason, the others go in. Started again after an interruption it goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--format", default="", choices=("csv", "jsonl"), help="if its ending does not say"
        )
        parser.add_argument("--encoding", default="", help="if it is neither UTF-8, UTF-16 nor Windows-1252")
        parser.add_argument("--delimiter", default="", help="default: the , ; tab or | of the first line")
        parser.add_argument("--time-zone", default="", help="of times without one, such as Europe/Berlin")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"where a field stands; otherwise in the column of its name. Fields: {', '.join(FIELDS)}",
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="FIELD=VALUE",
            help="for rows that say nothing about the field, such as reporter=alice",
        )
        parser.add_argument("--create-categories", action="store_true", help="make those that do not exist")
        parser.add_argument("--dry-run", action="store_true", help="check every row, store nothing")
        parser.add_argument(
            "--again", action="store_true", help="import a file anew that was imported before"
        )
        parser.add_argument(
            "--rejected",
            type=Path,
            metavar="FILE",
            help="append the bad rows to this file as JSON Lines, to be corrected and imported",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = Options(
            format=options["format"],
            encoding=options["encoding"],
            delimiter=options["delimiter"].replace("\\t", "\t"),
            time_zone=options["time_zone"],
            mapping=_pairs(options["map"], "--map"),
            constants=_pairs(options["set"], "--set"),
            create_categories=options["create_categories"],
        )
        try:
            result = self._import(options["file"], chosen, options)
        except ImportRefused as error:
            raise CommandError(str(error)) from error
        self._report(result, options["dry_run"])

    def _import(self, path: Path, chosen: Options, options: dict[str, Any]) -> Result:
        size = path.stat().st_size if path.is_file() else 0
        with (
            tqdm(
                total=size, unit="B", unit_scale=True, file=sys.stderr, disable=not sys.stderr.isatty()
            ) as bar,
            _RejectedRows(options["rejected"], self.stderr) as rejected,
        ):
            return import_tickets(
                path,
                chosen,
                dry_run=options["dry_run"],
                again=options["again"],
                on_rejected=rejected.add,
                on_progress=lambda position: _advance(bar, position),
            )

    def _report(self, result: Result, dry_run: bool) -> None:
        if result.encoding == "cp1252":
            self.stdout.write("The file is not UTF-8 and was read as Windows-1252.")
        if result.unused_columns:
            self.stdout.write(f"Not used: {', '.join(result.unused_columns)}.")
        if result.resumed_behind:
            self.stdout.write(f"Went on behind {result.resumed_behind} rows that were done before.")
        self.stdout.write(f"{', '.join(result.counts(dry_run=dry_run))}.")
        if result.rejected:
            raise CommandError("Not every row was imported.")


class _RejectedRows:
    """Lists bad rows on standard error, and in a file if one is wanted."""

    def __init__(self, path: Path | None, stderr: Any) -> None:
        self.path, self.stderr = path, stderr

    def __enter__(self) -> "_RejectedRows":
        self.file = self._open(self.path) if self.path else None
        return self

    @staticmethod
    def _open(path: Path) -> Any:
        """Written line by line: what a killed import has rejected must be in it, as the next start goes on
        behind those rows.
        """
        return path.open("a", encoding="utf-8", buffering=1)

    def __exit__(self, *failure: object) -> None:
        if self.file:
            self.file.close()

    def add(self, rejected: Rejected) -> None:
        with tqdm.external_write_mode(sys.stderr):  # not into the progress bar
            self.stderr.write(f"line {rejected.row.line}: {rejected.reason}")
        if self.file:
            self.file.write(json.dumps(rejected.row.cells, ensure_ascii=True) + "\n")


def _advance(bar: Any, position: int) -> None:
    bar.update(position - bar.n)


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = next((name for name, sign, _value in pairs if not sign), None)
    if wrong is not None:
        raise CommandError(f"{option} {wrong} lacks an equals sign: write it as FIELD=…")
    return {name.strip(): value.strip() for name, _sign, value in pairs}
