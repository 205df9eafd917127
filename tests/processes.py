"""What processes beside the tests need to know."""

from __future__ import annotations

from urllib.parse import quote

from django.db import connection


def database_url() -> str:
    """DATABASE_URL of the database that this process is connected to."""
    parameters = connection.get_connection_params()
    secret = f":{quote(parameters['password'], safe='')}" if parameters.get("password") else ""
    port = f":{parameters['port']}" if parameters.get("port") else ""
    host = str(parameters.get("host", ""))
    if host.startswith("/"):  # the folder of a socket is written as the beginning of the path
        host, port = "", f"/{host}"
    return f"postgres://{parameters.get('user', '')}{secret}@{host}{port}/{connection.settings_dict['NAME']}"
