"""Mistakes of the operator, at every entry point (manage.py, asgi): one sentence, no traceback."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db.utils import OperationalError, ProgrammingError

from helpdesk.configuration import ConfigurationError
from helpdesk.postgres import EmbeddedPostgresError

# No server error code: the connection itself failed. The classes are: connection exception, refused login,
# unknown database, and a server that starts, stops or is full.
CONNECTION_CODES = ("08", "28", "3D000", "57P", "53300")
MISSING_TABLE, MISSING_COLUMN = "42P01", "42703"


@contextmanager
def one_sentence_errors() -> Iterator[None]:
    """Ends the process with one sentence on standard error where the operator has to change something."""
    try:
        yield
    except (ConfigurationError, EmbeddedPostgresError) as error:
        _leave(str(error))
    except OperationalError as error:
        if not is_connection_failure(error):
            raise
        _leave(unreachable_sentence(error))
    except ProgrammingError as error:
        if not _needs_migrations(error):
            raise
        _leave("The database lacks tables or columns of this version: run manage.py migrate.")


def _needs_migrations(error: ProgrammingError) -> bool:
    """Whether a statement failed for that, and not for a mistake of ours."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    if getattr(error.__cause__, "sqlstate", None) not in (MISSING_TABLE, MISSING_COLUMN):
        return False
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def is_connection_failure(error: BaseException) -> bool:
    """Whether a database error means that the server cannot be reached, as opposed to a refused statement."""
    cause = error.__cause__ if isinstance(error, OperationalError) else None
    if isinstance(error, EmbeddedPostgresError):
        return True
    if cause is None:
        return False
    code = getattr(cause, "sqlstate", None)
    return code is None or code.startswith(CONNECTION_CODES)


def unreachable_sentence(error: BaseException) -> str:
    """Names the setting, the address without its password, and the fix."""
    if isinstance(error, EmbeddedPostgresError):
        return str(error)
    database = settings.DATABASES["default"]
    host, port = database.get("HOST") or "localhost", database.get("PORT") or 5432
    return (
        f"The database {database['NAME']} at {host}:{port} cannot be reached ({_reason(error)}):"
        " start it, or correct DATABASE_URL."
    )


def _reason(error: BaseException) -> str:
    """What the driver says without the address, which stands in the sentence already."""
    first = next(iter(str(error).strip().splitlines()), "no answer")
    return re.sub(r"\[Errno [^]]*\] |FATAL: +", "", first).split(" failed: ")[-1].rstrip(".")


def _leave(sentence: str) -> None:
    print(sentence, file=sys.stderr)
    sys.exit(1)
