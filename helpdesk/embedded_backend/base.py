"""Django's Postgres backend on the embedded server, which starts with the first connection.

Nothing is started at import: a command that needs no database stays without one.
"""

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

from helpdesk import postgres


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        server = postgres.start(settings.EMBEDDED_POSTGRES_DIR)
        database = self.settings_dict["NAME"]
        if database == "helpdesk":
            server.ensure_database(database)
        return super().get_connection_params() | {"host": str(server.socket_dir), "user": postgres.SUPERUSER}
