"""Where the database has pgvector, and what becomes of the vector column where it has not.

Everything but search by meaning works without pgvector. The column is then a placeholder that holds nothing;
as soon as the extension is there, `ensure()` (called by the worker) turns it into the real one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from django.db import DatabaseError, connection, migrations, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext as _
from numpy.typing import NDArray

TABLE = "retrieval_ticketembedding"
# PLAIN, because halfvec(1024) is just over the size at which Postgres would move it out of the row, which
# costs three times the time of a scan. It has to be set before any row is stored.
ADD = f"ALTER TABLE {TABLE} ADD COLUMN embedding halfvec, ALTER COLUMN embedding SET STORAGE PLAIN"
ADD_PLACEHOLDER = f"ALTER TABLE {TABLE} ADD COLUMN embedding bytea"
DROP_PLACEHOLDER = f"ALTER TABLE {TABLE} DROP COLUMN embedding"
COLUMN_TYPE = f"""
    SELECT atttypid::regtype::text FROM pg_attribute
    WHERE attrelid = '{TABLE}'::regclass AND attname = 'embedding'
"""


def halfvec_text(vector: NDArray[np.float32]) -> str:
    """A vector as Postgres reads it, in the precision that is stored; in five digits, which tell any two
    halves apart and take half the time of all."""
    halves = vector.astype(np.float16).tolist()
    return "[" + ",".join(["%.5g"] * len(halves)) % tuple(halves) + "]"


class PgvectorMissing(Exception):
    """The database cannot hold vectors; the text is one sentence with the fix."""


def missing_sentence() -> str:
    return _(
        "Search by meaning needs the extension pgvector (0.7 or later) in this database: "
        "install it on the database server, or let an administrator run CREATE EXTENSION vector."
    )


def ensure() -> None:
    """Makes the vector column usable; raises PgvectorMissing where that is impossible."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMN_TYPE)
        if cursor.fetchone() == ("halfvec",):
            return
        if not _create_extension(connection):
            raise PgvectorMissing(missing_sentence())
        with transaction.atomic():
            cursor.execute(DROP_PLACEHOLDER)
            cursor.execute(ADD)


def _create_extension(db: BaseDatabaseWrapper) -> bool:
    """Whether the type `halfvec` is there in the end."""
    try:
        with transaction.atomic(using=db.alias), db.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DatabaseError as error:
        if isinstance(error.__cause__, psycopg.OperationalError):
            raise
    with db.cursor() as cursor:
        cursor.execute("SELECT to_regtype('halfvec') IS NOT NULL")
        return bool(cursor.fetchone()[0])


class AddVectorField(migrations.AddField):
    """Adds the vector column, or its placeholder with a warning."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if _create_extension(schema_editor.connection):
            schema_editor.execute(ADD)
        else:
            schema_editor.execute(ADD_PLACEHOLDER)
            print(f"\n  Warning: {missing_sentence()}")  # noqa: T201

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema_editor.execute(DROP_PLACEHOLDER)
