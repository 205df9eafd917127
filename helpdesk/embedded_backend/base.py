"""Django's Postgres backend on the embedded server, which starts with the first connection.

Nothing is started at import: a command that needs no database stays without one.
"""

from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from helpdesk import postgres


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        server = postgres.start(settings.EMBEDDED_POSTGRES_DIR)
        database = self.settings_dict["NAME"]
        if database and not database.startswith("test_"):  # the test runner makes its own
            server.ensure_database(database)
        return super().get_connection_params() | {"host": str(server.socket_dir), "user": postgres.SUPERUSER}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except psycopg.OperationalError:
            # Somebody ended the server under us: a long-running process brings it back.
            if not postgres.restart_if_gone(settings.EMBEDDED_POSTGRES_DIR):
                raise
            return super().get_new_connection(conn_params)
