"""Writing the log of searches, which must cost a search next to nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection

from tickets.models import Ticket
from tickets.querysets import TicketQuerySet

from .models import SearchLog

FIELDS = [
    field.attname for field in SearchLog._meta.concrete_fields if field.attname not in ("id", "created_at")
]
# Without what the database derives from the text: nobody reads it off a hit.
TICKET_FIELDS = [field.attname for field in Ticket._meta.concrete_fields if not field.generated]
# A search does not wait for the disk: should the database crash, the log may lack the last fraction of a
# second.
INSERT = f"""
    SET LOCAL synchronous_commit = off;
    INSERT INTO retrieval_searchlog ({", ".join(f'"{name}"' for name in FIELDS)})
    VALUES ({", ".join("%s" for _ in FIELDS)})
    RETURNING id"""


def log_and_fetch(
    values: dict[str, Any], tickets: TicketQuerySet, ids: Sequence[int]
) -> tuple[int, dict[int, Ticket]]:
    """Stores one `SearchLog` row, given all its fields but `created_at`, and fetches the tickets that were
    found.

    Answers the row's id and the tickets by id; of `ids` those are missing that are not among `tickets` any
    more. Both in one round trip: on a busy machine each costs more than the work itself.
    """
    statement, parameters = INSERT, [_encoded(values[name]) for name in FIELDS]
    if ids:
        sql, wanted = tickets.filter(pk__in=ids).order_by().only(*TICKET_FIELDS).query.sql_with_params()
        statement, parameters = f"{INSERT}; {sql}", [*parameters, *wanted]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        (log_id,) = _rows_of_next(cursor)[0]
        rows = _rows_of_next(cursor) if ids else []
    found = (Ticket.from_db(connection.alias, TICKET_FIELDS, row) for row in rows)
    return int(log_id), {ticket.pk: ticket for ticket in found}


def _rows_of_next(cursor: Any) -> list[Any]:
    """The rows of the next statement that has any."""
    while cursor.description is None:
        cursor.nextset()
    rows: list[Any] = cursor.fetchall()
    cursor.nextset()
    return rows


def _encoded(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value
