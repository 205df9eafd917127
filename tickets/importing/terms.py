"""What the parts of an import pass to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.utils.formats import number_format
from django.utils.translation import ngettext

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

    def counts(self, *, dry_run: bool) -> list[str]:
        """What became of the rows, in words."""
        created = (
            ngettext("%(n)s ticket would be created", "%(n)s tickets would be created", self.created)
            if dry_run
            else ngettext("%(n)s ticket created", "%(n)s tickets created", self.created)
        )
        rejected = ngettext("%(n)s row rejected", "%(n)s rows rejected", self.rejected)
        return [
            created % {"n": number_format(self.created, force_grouping=True)},
            rejected % {"n": number_format(self.rejected, force_grouping=True)},
        ]


Reject = Callable[[Rejected], None]
Progress = Callable[[int], None]  # bytes read so far
