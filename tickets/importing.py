"""Tickets from a file: CSV or JSON Lines, row by row, in bounded memory, to be resumed where it stopped.

How far a file was read is stored with its hash in the transaction that stores its tickets: whatever stops an
import, the same command goes on behind the last stored row and never creates a ticket twice. A row that
cannot become a ticket is reported with its line and the reason, and the others go in.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import zoneinfo
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models.functions import Lower
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from .models import Category, ImportRun, Ticket, TicketEvent, Via
from .text import clean_title, is_blank

FIELDS = (
    "title",
    "description",
    "status",
    "priority",
    "category",
    "reporter",
    "assignee",
    "resolution",
    "created_at",
    "updated_at",
    "resolved_at",
)
BATCH_ROWS = 1_000
BATCH_CHARS = 4_000_000
LONGEST_RECORD = 10_000_000  # characters; a longer one is most likely a quotation mark that never closes
TOO_LONG = "field limit"  # in the words of the csv module, which has one exception for everything
HASHED_AT_ONCE = 1 << 20
UNREADABLE = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of bytes that do not decode
GERMAN_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:,?\s+(\d{1,2}:\d{2}(?::\d{2})?))?")


class ImportRefused(Exception):
    """The file cannot be imported at all, or not any further. The text is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is read. `mapping` is field → column, `constants` is field → value for every row."""

    format: str = ""  # "csv", "jsonl"; empty: by the name of the file
    encoding: str = ""  # empty: UTF-8 if it is that, otherwise Windows-1252; UTF-16 by its mark
    delimiter: str = ""  # empty: whichever of , ; tab | the first line has most of
    time_zone: str = ""  # of times without one; empty: TIME_ZONE
    mapping: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    create_categories: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One record of the file: the line it begins at, its cells by column, and what is wrong with it."""

    line: int
    cells: dict[str, str]
    problem: str = ""

    @property
    def chars(self) -> int:
        return sum(map(len, self.cells.values()))


@dataclass(frozen=True, slots=True)
class Rejected:
    row: Row
    reason: str


@dataclass(slots=True)
class Result:
    created: int = 0
    rejected: int = 0
    resumed_behind: int = 0  # rows that an earlier run had stored or rejected
    unused_columns: tuple[str, ...] = ()
    encoding: str = ""


Reject = Callable[[Rejected], None]
Progress = Callable[[int], None]  # bytes read so far


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


# -- how far -------------------------------------------------------------------------------------------------


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
            _("This file has been imported (%(created)d tickets). Use --again to create them once more.")
            % {"created": run.created}
        )
    if run.options != options:
        raise ImportRefused(
            _("This file is half imported, with other options. Finish it with those, or use --again.")
        )


def _unsaved(source: Source) -> ImportRun:
    """A dry run checks everything, also what is already in."""
    return ImportRun(file_hash=source.hash)


class Store:
    """Stores batches in order, two at a time beside the reading: the database's work is the larger part.

    Each batch is one transaction with the tickets, their history and how far that brings the file: all of it
    or nothing. Inside a transaction of the caller everything happens in that one.
    """

    AT_A_TIME = 2

    def __init__(self, run: ImportRun, dry_run: bool) -> None:
        self.run, self.dry_run = run, dry_run
        self.rows = run.rows
        self.waiting: deque[Future[None]] = deque()
        self.last: Future[None] | None = None

    def __enter__(self) -> Store:
        self.pool = None if connection.in_atomic_block else ThreadPoolExecutor(self.AT_A_TIME)
        return self

    def __exit__(self, failed: type[BaseException] | None, *failure: object) -> None:
        try:
            self._wait(0)
            if not (failed or self.dry_run):
                ImportRun.objects.filter(pk=self.run.pk).update(finished_at=timezone.now())
        finally:
            if self.pool:
                self.pool.shutdown()

    def add(self, tickets: list[Ticket], rows: int) -> None:
        begin, self.rows = self.rows, self.rows + rows
        if self.dry_run:
            return
        if self.pool is None:
            self._store(tickets, begin, rows, None)
            return
        self.last = self.pool.submit(self._store_in_thread, tickets, begin, rows, self.last)
        self.waiting.append(self.last)
        self._wait(self.AT_A_TIME)

    def _wait(self, allowed: int) -> None:
        while len(self.waiting) > allowed:
            self.waiting.popleft().result()

    def _store_in_thread(self, *batch: Any) -> None:
        try:
            self._store(*batch)
        finally:
            connection.close()

    def _store(self, tickets: list[Ticket], begin: int, rows: int, before: Future[None] | None) -> None:
        with transaction.atomic():
            _copy(tickets)
            _record_creation(tickets)
            if before:
                before.result()  # in order; if that one failed, so does this one
            run = ImportRun.objects.select_for_update().get(pk=self.run.pk)
            if run.rows != begin:
                raise ImportRefused(_("Another import of the same file is running."))
            run.rows += rows
            run.created += len(tickets)
            run.rejected += rows - len(tickets)
            run.save(update_fields=["rows", "created", "rejected"])


def _copy(tickets: Sequence[Ticket]) -> None:
    """`bulk_create()` by COPY, which is twice as fast: it neither builds a statement nor reads back what the
    database generates.
    """
    fields = [field for field in Ticket._meta.concrete_fields if not field.generated]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    names = [field.attname for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('tickets_ticket', 'id')) FROM generate_series(1, %s)",
            [len(tickets)],
        )
        for ticket, (pk,) in zip(tickets, cursor.fetchall(), strict=True):
            ticket.pk = pk
        with cursor.copy(f"COPY tickets_ticket ({columns}) FROM STDIN") as copy:
            for ticket in tickets:
                copy.write_row([_plain_value(getattr(ticket, name)) for name in names])


def _plain_value(value: object) -> object:
    """A choice is its value; the driver would take its name."""
    return value.value if isinstance(value, Enum) else value


def _record_creation(tickets: Sequence[Ticket]) -> None:
    """The first line of each history, at the time at which the ticket says that it was created."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO tickets_ticketevent
                (ticket_id, version, kind, field, old, new, actor_id, via, created_at)
            SELECT id, version, %s, '', '', title, reporter_id, %s, created_at
            FROM tickets_ticket WHERE id = ANY(%s) ORDER BY id
            """,
            [TicketEvent.Kind.CREATED.value, Via.IMPORT.value, [ticket.pk for ticket in tickets]],
        )


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


# -- the file ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """A file, once read through: what it is, and in which encoding."""

    path: Path
    format: str
    encoding: str
    delimiter: str
    hash: str

    @classmethod
    def of(cls, path: Path, options: Options) -> Source:
        """Raises `ImportRefused` if it cannot be read, or nobody can tell what it is."""
        format_ = options.format or _format_of(path)
        try:
            digest, detected = _read_through(path)
        except OSError as error:
            reason = {"path": path, "reason": error.strerror}
            raise ImportRefused(_("%(path)s cannot be read: %(reason)s.") % reason) from error
        return cls(path, format_, options.encoding or detected, options.delimiter, digest)

    @contextmanager
    def rows(self) -> Iterator[CsvRows | JsonRows]:
        # UTF-16 cannot carry undecodable bytes along; there they become U+FFFD.
        errors = "replace" if "16" in self.encoding else "surrogateescape"
        try:
            with self.path.open(encoding=self.encoding, errors=errors, newline="") as file:
                yield CsvRows(file, self.delimiter) if self.format == "csv" else JsonRows(file)
        except LookupError as error:
            raise ImportRefused(_("There is no encoding %(name)s.") % {"name": self.encoding}) from error


def _format_of(path: Path) -> str:
    known = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    try:
        return known[path.suffix.lower()]
    except KeyError:
        message = _(
            "Whether %(name)s is CSV or JSON Lines, its ending does not say: give --format csv or jsonl."
        )
        raise ImportRefused(message % {"name": path.name}) from None


def _read_through(path: Path) -> tuple[str, str]:
    """The hash of the file and its encoding: UTF-8 if it is that to the end, Windows-1252 otherwise."""
    digest, decoder, is_utf8 = hashlib.sha256(), getincrementaldecoder("utf-8")(), True
    start = b""
    with path.open("rb") as file:
        while chunk := file.read(HASHED_AT_ONCE):
            start = start or chunk[:4]
            digest.update(chunk)
            is_utf8 = is_utf8 and _decodes(decoder, chunk)
    is_utf8 = is_utf8 and _decodes(decoder, b"", final=True)
    return digest.hexdigest(), _utf_16(start) or ("utf-8-sig" if is_utf8 or _is_marked(start) else "cp1252")


def _is_marked(start: bytes) -> bool:
    return start.startswith(b"\xef\xbb\xbf")


def _utf_16(start: bytes) -> str:
    """Which UTF-16 a file begins in, if any. Without a mark the first letter, of a column's name, gives it
    away by its zero byte.
    """
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if start[:1] != b"\0" == start[1:2]:
        return "utf-16-le"
    return "utf-16-be" if start[:1] == b"\0" != start[1:2] else ""


def _decodes(decoder: Any, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


class Lines:
    """The lines of a file, none longer than a record may be, with the number of the one that is read next."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.read = 0

    def lines(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST_RECORD + 1):
            self.read += 1
            if len(line) > LONGEST_RECORD:
                raise _too_long(self.read)
            yield line

    def position(self) -> int:
        position: int = self.file.buffer.tell()  # type: ignore[attr-defined]
        return position


class CsvRows(Lines):
    def __init__(self, file: IO[str], delimiter: str) -> None:
        super().__init__(file)
        lines = self.lines()
        first = next(lines, "")
        # Strict: otherwise a quotation mark left open takes the rest of the file for one text, silently.
        self.reader = csv.reader(
            chain([first], lines), delimiter=delimiter or _delimiter_of(first), strict=True
        )
        self.columns = tuple(clean_title(name) for name in self._header())
        if len(set(self.columns)) < len(self.columns):
            raise ImportRefused(_("Two columns have the same name in the first line of the file."))

    def __iter__(self) -> Iterator[Row]:
        while True:
            line = self.read + 1
            try:
                cells = self._next()
            except csv.Error as error:
                if TOO_LONG in str(error):
                    raise _too_long(line) from error
                yield Row(
                    line, {}, _("a quotation mark is left open, or stands where it needs to be doubled")
                )
                continue
            if cells is None:
                return
            if cells:
                yield self._row(line, cells)

    def _header(self) -> list[str]:
        try:
            return self._next() or []
        except csv.Error as error:
            raise ImportRefused(
                _("The first line of the file cannot be read as CSV: look at its quotation marks.")
            ) from error

    def _next(self) -> list[str] | None:
        with _long_fields():
            return next(self.reader, None)

    def _row(self, line: int, cells: list[str]) -> Row:
        named = dict(zip(self.columns, cells, strict=False))
        if len(cells) == len(self.columns):
            return Row(line, named)
        counts = {"found": len(cells), "expected": len(self.columns)}
        return Row(line, named, _("%(found)d cells instead of %(expected)d") % counts)


def _delimiter_of(line: str) -> str:
    return max(",;\t|", key=line.count)


@contextmanager
def _long_fields() -> Iterator[None]:
    """The limit is one for the whole process, so that it is put back."""
    before = csv.field_size_limit(LONGEST_RECORD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _too_long(line: int) -> ImportRefused:
    return ImportRefused(
        _("The record at line %(line)d is longer than %(limit)d characters; is a quotation mark left open?")
        % {"line": line, "limit": LONGEST_RECORD}
    )


class JsonRows(Lines):
    columns: tuple[str, ...] = ()  # any line may have others

    def __iter__(self) -> Iterator[Row]:
        for line in self.lines():
            if line.strip():
                yield self._row(line)

    def _row(self, line: str) -> Row:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            return Row(self.read, {}, _("not a JSON object"))
        if not isinstance(values, dict) or any(isinstance(value, dict | list) for value in values.values()):
            return Row(self.read, {}, _("not a JSON object of plain values"))
        return Row(self.read, {name: _plain(value) for name, value in values.items() if value is not None})


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# -- from a row to a ticket ----------------------------------------------------------------------------------


class Builder:
    """Makes tickets of rows, by the rules of the models, without a query for each row."""

    def __init__(self, options: Options, dry_run: bool) -> None:
        self.options = options
        self.dry_run = dry_run
        self.mapping = dict(options.mapping)
        self.zone = _zone(options.time_zone)
        self.people = _people()
        self.categories = dict(Category.objects.annotate(key=Lower("name")).values_list("key", "pk"))
        self.labels = {name: _labels(name) for name in ("status", "priority")}
        self.assignees: dict[int, list[str]] = {}
        unknown = [name for name in {**options.mapping, **options.constants} if name not in FIELDS]
        if unknown:
            names = {"unknown": ", ".join(unknown), "known": ", ".join(FIELDS)}
            raise ImportRefused(_("There is no field %(unknown)s. Fields are: %(known)s.") % names)

    def choose_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Decides which column fills which field: as told, otherwise by its name. Returns those left over."""
        by_name = {name.lower(): name for name in columns}
        for name in FIELDS:
            spelt = (
                by_name.get(name)
                or by_name.get(name.replace("_at", ""))
                or by_name.get(name.replace("_", " "))
            )
            self.mapping.setdefault(name, spelt or name)
        missing = [column for column in self.options.mapping.values() if columns and column not in columns]
        if missing:
            names = {"missing": ", ".join(missing), "columns": ", ".join(columns)}
            raise ImportRefused(
                _("The file has no column %(missing)s. Its columns are: %(columns)s.") % names
            )
        return tuple(column for column in columns if column and column not in self.mapping.values())

    def tickets(self, rows: list[Row], on_rejected: Reject) -> list[Ticket]:
        tickets = []
        for row in rows:
            try:
                tickets.append(self.ticket(row))
            except ValidationError as error:
                on_rejected(Rejected(row, _reason(error)))
        return tickets

    def ticket(self, row: Row) -> Ticket:
        """Raises `ValidationError` with a sentence for each wrong field."""
        if row.problem:
            raise ValidationError(row.problem)
        if any(map(UNREADABLE.search, row.cells.values())):
            raise ValidationError(_("bytes that are no text in the encoding of the file"))
        values = {name: self._value(name, row) for name in FIELDS}
        ticket = Ticket(source=Ticket.Source.IMPORT)
        errors: dict[str, list[str]] = {}
        for name, fill in self._STEPS:
            try:
                fill(self, ticket, name, values[name])
            except ValidationError as error:
                errors[name] = error.messages
        self._check(ticket, errors)
        return ticket

    def _value(self, name: str, row: Row) -> str:
        return row.cells.get(self.mapping[name], "") or self.options.constants.get(name, "")

    def _check(self, ticket: Ticket, errors: dict[str, list[str]]) -> None:
        try:
            ticket.check_fields({"title", "description", "resolution"} - errors.keys())
        except ValidationError as error:
            errors |= error.message_dict
        if errors:
            raise ValidationError(errors)

    # Each fills one field from the text of its cell, or raises `ValidationError`.

    def _text(self, ticket: Ticket, name: str, text: str) -> None:
        setattr(ticket, name, text)

    def _choice(self, ticket: Ticket, name: str, text: str) -> None:
        value = self.labels[name].get(clean_title(text).lower()) if text else _field(name).default
        if value is None:
            choices = ", ".join(dict.fromkeys(self.labels[name].values()))
            named = {"value": clean_title(text)[:80], "choices": choices}
            raise ValidationError(_("“%(value)s” is none of: %(choices)s.") % named)
        setattr(ticket, name, value)

    def _category(self, ticket: Ticket, name: str, text: str) -> None:
        title = clean_title(text)
        if not title:
            return
        if title.lower() not in self.categories:
            self.categories[title.lower()] = self._new_category(title)
        ticket.category_id = self.categories[title.lower()]

    def _new_category(self, name: str) -> int:
        if not self.options.create_categories:
            raise ValidationError(_("There is no category “%(name)s”.") % {"name": name[:80]})
        category = Category(name=name)
        category.full_clean()
        if self.dry_run:
            return 0
        category.save()
        return category.pk

    def _reporter(self, ticket: Ticket, name: str, text: str) -> None:
        if is_blank(text):
            raise ValidationError(_("Nobody is named."))
        ticket.reporter_id = self._person(text)

    def _assignee(self, ticket: Ticket, name: str, text: str) -> None:
        if is_blank(text):
            return
        pk = self._person(text)
        if pk not in self.assignees:
            self.assignees[pk] = _refusal("assignee", pk, ticket)
        if self.assignees[pk]:
            raise ValidationError(self.assignees[pk])
        ticket.assignee_id = pk

    def _person(self, text: str) -> int:
        known = self.people.get(clean_title(text).lower(), ())
        if len(known) == 1:
            return known[0]
        name = {"name": clean_title(text)[:80]}
        raise ValidationError(
            _("“%(name)s” may be several people.") % name
            if known
            else _("There is nobody “%(name)s”.") % name
        )

    def _created(self, ticket: Ticket, name: str, text: str) -> None:
        ticket.created_at = ticket.updated_at = self._moment(text) or timezone.now()

    def _updated(self, ticket: Ticket, name: str, text: str) -> None:
        ticket.updated_at = max(self._moment(text) or ticket.created_at, ticket.created_at)

    def _resolved(self, ticket: Ticket, name: str, text: str) -> None:
        moment = self._moment(text)
        if ticket.is_resolved:
            ticket.resolved_at = max(moment or ticket.updated_at, ticket.created_at)

    def _moment(self, text: str) -> datetime | None:
        text = clean_title(text)
        if not text:
            return None
        moment = parse_moment(text, self.zone)
        if moment > timezone.now() + timedelta(minutes=5):
            raise ValidationError(_("“%(value)s” is in the future.") % {"value": text[:80]})
        return moment

    _STEPS: tuple[tuple[str, Callable[[Builder, Ticket, str, str], None]], ...] = (
        ("title", _text),
        ("description", _text),
        ("resolution", _text),
        ("status", _choice),
        ("priority", _choice),
        ("category", _category),
        ("reporter", _reporter),
        ("assignee", _assignee),
        ("created_at", _created),
        ("updated_at", _updated),
        ("resolved_at", _resolved),
    )


def parse_moment(text: str, zone: tzinfo) -> datetime:
    """ISO 8601 with or without time and zone, or as Germans write it: 24.12.2025 18:30. Aware, or
    `ValidationError`.
    """
    try:
        german = GERMAN_DATE.fullmatch(text)
        if german:
            day = date(int(german[3]), int(german[2]), int(german[1]))
            moment = datetime.combine(day, time.fromisoformat((german[4] or "0:00").zfill(5)))
        else:
            moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(timezone.get_default_timezone())
    except (ValueError, OverflowError) as error:
        message = _("“%(value)s” is no time; write it as 2025-12-24T18:30 or 24.12.2025 18:30.")
        raise ValidationError(message % {"value": text[:80]}) from error


def _field(name: str) -> Any:
    return Ticket._meta.get_field(name)


def _zone(name: str) -> tzinfo:
    try:
        return zoneinfo.ZoneInfo(name) if name else timezone.get_default_timezone()
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ImportRefused(_("There is no time zone %(name)s.") % {"name": name}) from error


def _people() -> dict[str, tuple[int, ...]]:
    """Ids by user name and by address, in lower case. A user name counts before an address."""
    people: dict[str, tuple[int, ...]] = {}
    for pk, email in User.objects.exclude(email="").values_list("pk", Lower("email")).iterator():
        people[email] = (*people.get(email, ()), pk)
    names: dict[str, tuple[int, ...]] = {}
    for pk, name in User.objects.values_list("pk", Lower("username")).iterator():
        names[name] = (*names.get(name, ()), pk)
    return people | names


def _labels(name: str) -> dict[str, str]:
    """How people write the choices of a field: as stored, or by their labels in any language of the site."""
    labels: dict[str, str] = {}
    for code, _language in settings.LANGUAGES:
        with translation.override(code):
            choices: Any = _field(name).choices
            labels |= {str(label).lower(): value for value, label in choices}
    return labels | {value: value for value in list(labels.values())}


def _refusal(name: str, pk: int, ticket: Ticket) -> list[str]:
    """What the model has against this person in this field."""
    try:
        _field(name).clean(pk, ticket)
    except ValidationError as error:
        return error.messages
    return []


def _reason(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return "; ".join(f"{name}: {' '.join(messages)}" for name, messages in error.message_dict.items())
