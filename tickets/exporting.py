"""Tickets as CSV, streamed: for spreadsheets, which run what begins like a formula."""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils import timezone

from .models import Ticket
from .permissions import Person
from .querysets import TicketQuerySet

COLUMNS = (
    "id",
    "title",
    "description",
    "status",
    "priority",
    "category",
    "reporter",
    "assignee",
    "source",
    "resolution",
    "duplicate_of",
    "duplicate_check",
    "created_at",
    "updated_at",
    "resolved_at",
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
AT_ONCE = 500  # tickets in memory
BYTE_ORDER_MARK = "\ufeff"  # without it Excel takes UTF-8 for something else


class _Echo:
    """What `csv.writer` writes to: hands the line back instead of keeping it."""

    def write(self, line: str) -> str:
        return line


def csv_response(tickets: TicketQuerySet, user: Person) -> StreamingHttpResponse:
    """The tickets of a list that `user` may see, in its order, as a file to download.

    Only the ids are read at once; the rest follows in small pieces while the client takes it. The iterator is
    asynchronous, as the site is: of a synchronous one the server would collect everything first.
    """
    ids = list(tickets.values_list("pk", flat=True))
    name = f"tickets-{timezone.localtime():%Y-%m-%d}.csv"
    return StreamingHttpResponse(
        _stream(ids, user),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


async def _stream(ids: list[int], user: Person) -> AsyncIterator[str]:
    yield BYTE_ORDER_MARK + _line(COLUMNS)
    for begin in range(0, len(ids), AT_ONCE):
        yield await sync_to_async(_lines)(ids[begin : begin + AT_ONCE], user)


def _lines(ids: list[int], user: Person) -> str:
    visible = Ticket.objects.visible_to(user).select_related("category", "reporter", "assignee")
    found = visible.defer("content_hash", "identifiers").in_bulk(ids)
    return "".join(_line(_cells(found[pk])) for pk in ids if pk in found)


def _line(cells: Iterable[object]) -> str:
    line: str = csv.writer(_Echo()).writerow([guarded(cell) for cell in cells])
    return line


def _cells(ticket: Ticket) -> Iterator[Any]:
    for name in COLUMNS:
        match name:
            case "category":
                yield ticket.category.name if ticket.category else None
            case "reporter" | "assignee":
                person = getattr(ticket, name)
                yield person.username if person else None
            case "duplicate_of":
                yield ticket.duplicate_of_id
            case _:
                yield getattr(ticket, name)


def guarded(cell: object) -> object:
    """A cell that no spreadsheet computes: an apostrophe before what it would take for a formula."""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{cell}"
    return cell
