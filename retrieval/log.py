"""Writing the log of searches, which must cost a search next to nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection

from tickets.models import Ticket

from .candidates import Scope, skip_settings
from .models import SearchLog

FIELDS = [
    field.attname for field in SearchLog._meta.concrete_fields if field.attname not in ("id", "created_at")
]
# Without what the database derives from the text: nobody reads it off a hit.
TICKET_FIELDS = [field.attname for field in Ticket._meta.concrete_fields if not field.generated]
# A search does not wait for the disk: should the database crash, the log may lack the last fraction of a
# second. Inside a larger transaction the setting would hold for that as well, and for what it saves.
WITHOUT_WAITING = "SET LOCAL synchronous_commit = off;"
INSERT = f"""
    INSERT INTO retrieval_searchlog ({", ".join(f'"{name}"' for name in FIELDS)})
    VALUES ({", ".join(f"%({name})s" for name in FIELDS)})
    RETURNING id"""
FETCH = f""";
    SELECT {", ".join(f'"{name}"' for name in TICKET_FIELDS)} FROM tickets_ticket
    WHERE id = ANY(%(ids)s) {{filters}}"""


def log_and_fetch(values: dict[str, Any], scope: Scope, ids: Sequence[int]) -> tuple[int, dict[int, Ticket]]:
    """Stores one `SearchLog` row, given all its fields but `created_at`, and fetches the tickets that were
    found.

    Answers the row's id and the tickets by id; of `ids` those are missing that are out of scope by now. Both
    in one round trip: on a busy machine each costs more than the work itself.
    """
    statement = INSERT if connection.in_atomic_block else WITHOUT_WAITING + INSERT
    parameters = {name: _encoded(value) for name, value in values.items()}
    if ids:
        parameters["ids"] = list(ids)
        statement += FETCH.format(filters=scope.filters("id", parameters))
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        skip_settings(cursor)
        (log_id,) = cursor.fetchone()
        rows = cursor.fetchall() if cursor.nextset() else []
    alias = connection.alias
    found = (Ticket.from_db(alias, TICKET_FIELDS, row) for row in rows)
    return int(log_id), {ticket.pk: ticket for ticket in found}


def _encoded(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value
