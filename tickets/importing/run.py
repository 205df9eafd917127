"""One import, from the file to its last ticket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from ..models import ImportRun
from .builder import Builder
from .files import Source
from .store import Store
from .terms import ImportRefused, Options, Progress, Reject, Result, Row

BATCH_ROWS = 1_000
BATCH_CHARS = 4_000_000


def import_tickets(
    path: Path,
    options: Options,
    *,
    dry_run: bool = False,
    again: bool = False,
    on_rejected: Reject = lambda rejected: None,
    on_progress: Progress = lambda position: None,
) -> Result:
    """Create a ticket for each good row of the file and report the others; a `dry_run` stores nothing.

    Goes on where an earlier, interrupted import of the same file stopped; `again` begins anew. Raises
    `ImportRefused`; the rows before the place it names are stored then.
    """
    source = Source.of(path, options)
    run = _unsaved(source) if dry_run else _begin(source, options, again)
    result = Result(encoding=source.encoding, resumed_behind=run.rows)
    builder = Builder(options, dry_run)
    with source.rows() as rows:
        result.unused_columns = builder.choose_columns(rows.columns)
        with Store(run, dry_run) as store:
            for batch in _batches(islice(iter(rows), run.rows, None)):
                tickets = builder.tickets(batch, on_rejected)
                store.add(tickets, len(batch))
                result.created += len(tickets)
                result.rejected += len(batch) - len(tickets)
                on_progress(rows.position())
    return result


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """So many rows, or so much text, at once: what bounds the memory, whatever the file."""
    batch: list[Row] = []
    chars = 0
    for row in rows:
        batch.append(row)
        chars += row.chars
        if len(batch) == BATCH_ROWS or chars > BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _begin(source: Source, options: Options, again: bool) -> ImportRun:
    """The record of this file, new or from an interrupted import."""
    settings_used = json.loads(json.dumps(asdict(options)))
    begun = {"name": source.path.name[:200], "options": settings_used}
    with transaction.atomic():
        run, is_new = ImportRun.objects.select_for_update().get_or_create(
            file_hash=source.hash, defaults=begun
        )
        if not is_new and (again or not run.created):
            # Nothing came of it so far, so that other options may.
            run.rows = run.created = run.rejected = 0
            run.options, run.finished_at = settings_used, None
            run.save()
    _refuse_finished(run, settings_used)
    return run


def _refuse_finished(run: ImportRun, options: Any) -> None:
    if run.finished_at:
        raise ImportRefused(
            _(
                "This file has been imported (%(created)d tickets). To create them once more,"
                " choose to import it again."
            )
            % {"created": run.created}
        )
    if run.options != options:
        raise ImportRefused(
            _(
                "This file is half imported, with other options. Finish it with those, or choose to import"
                " it again."
            )
        )


def _unsaved(source: Source) -> ImportRun:
    """A dry run checks everything, also what is already in."""
    return ImportRun(file_hash=source.hash)
