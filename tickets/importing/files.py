"""The rows of a file: CSV or JSON Lines, in whichever encoding, and never more than one record in memory."""

from __future__ import annotations

import csv
import hashlib
import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext as _

from ..text import clean_title
from .terms import ImportRefused, Options, Row

LONGEST_RECORD = 10_000_000  # characters; a longer one is most likely a quotation mark that never closes
TOO_LONG = "field limit"  # in the words of the csv module, which has one exception for everything
HASHED_AT_ONCE = 1 << 20


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
            "Whether %(name)s is CSV or JSON Lines, its ending does not say: let it end in .csv or .jsonl."
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
