"""Reads one environment variable each, and says in one sentence what is wrong with it.

`helpdesk.settings` is the only caller: the names, the defaults and the meaning stand there.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import environ
from django.core.exceptions import ImproperlyConfigured

PLACEHOLDERS = frozenset({"", "placeholder", "changeme", "change-me", "none", "todo", "xxx"})

VOYAGE_SIZES = (256, 512, 1024, 2048)
FIXED_VOYAGE_SIZES = {
    "voyage-3": (1024,),
    "voyage-3-lite": (512,),
    "voyage-multilingual-2": (1024,),
    "voyage-law-2": (1024,),
    "voyage-finance-2": (1024,),
    "voyage-code-2": (1536,),
}


class ConfigurationError(ImproperlyConfigured):
    """A setting the operator has to change. The text is one sentence with its name and the fix."""


def add_env_file(env: environ.Env, usual: Path) -> None:
    """Adds the lines of the .env file, or of the one that ENV_FILE names; what is set already wins."""
    path = env.str("ENV_FILE", default=str(usual))
    if path and Path(path).is_file():
        env.read_env(path)


def text(env: environ.Env, name: str, default: str = "") -> str:
    """The value without surrounding blanks; an empty value counts as unset."""
    return str(env.str(name, default="")).strip() or default


def names(env: environ.Env, name: str) -> list[str]:
    """A comma-separated list without blanks and empty entries."""
    return [part.strip() for part in text(env, name).split(",") if part.strip()]


def replica(address: str) -> dict[str, Any]:
    """The same of SEARCH_DATABASE_URL, for connections that cannot write and give up soon."""
    database = postgres(address, "SEARCH_DATABASE_URL")
    database["OPTIONS"] |= {"connect_timeout": 2, "options": "-c default_transaction_read_only=on"}
    return database


def mapping(env: environ.Env, name: str) -> dict[str, str]:
    """A comma-separated list of LEFT=RIGHT. LEFT may hold an equals sign, as the names of directories do."""
    pairs = [part.rpartition("=") for part in names(env, name)]
    if not all(left.strip() and right.strip() for left, _equals, right in pairs):
        raise ConfigurationError(f"{name} has a part without '=': write it as THEIRS=OURS,THEIRS=OURS.")
    return {left.strip(): right.strip() for left, _equals, right in pairs}


def flag(env: environ.Env, name: str, default: bool) -> bool:
    value = text(env, name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ConfigurationError(f"{name} is {value!r}: set it to 'on' or 'off'.")


def integer(
    env: environ.Env, name: str, default: int, *, minimum: int = 1, maximum: int | None = None
) -> int:
    value = text(env, name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ConfigurationError(
            f"{name} is {value!r}: set it to a whole number, for example {default}."
        ) from None
    if number < minimum or (maximum is not None and number > maximum):
        raise ConfigurationError(f"{name} is {number}: set it to a number {_bounds(minimum, maximum)}.")
    return number


def seconds(env: environ.Env, name: str, default: float) -> float:
    value = text(env, name, str(default))
    try:
        number = float(value)
    except ValueError:
        raise ConfigurationError(
            f"{name} is {value!r}: set it to seconds, for example {default:g}."
        ) from None
    if not 0 < number < 86_400:
        raise ConfigurationError(f"{name} is {value}: set it to seconds above 0 and below 86400.")
    return number


def choice(env: environ.Env, name: str, default: str, allowed: Iterable[str]) -> str:
    value = text(env, name, default)
    if value not in allowed:
        raise ConfigurationError(f"{name} is {value!r}: set it to one of {', '.join(allowed)}.")
    return value


def optional_choice(env: environ.Env, name: str, default: str, allowed: Iterable[str]) -> str:
    """Like `choice`, where set but empty means none."""
    return "" if env.str(name, default=default).strip() == "" else choice(env, name, default, allowed)


def url(env: environ.Env, name: str, default: str = "") -> str:
    """An http(s) address without trailing slash, or `default`."""
    value = text(env, name, default)
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            f"{name} is not a web address: write it with its scheme, for example https://api.example.com."
        )
    return value.rstrip("/")


def time_zone(env: environ.Env, name: str, default: str) -> str:
    value = text(env, name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"{name} is {value!r}: set it to a name of the time zone database, for example Europe/Berlin."
        ) from None
    return value


def is_placeholder(key: str) -> bool:
    """Whether a key is one of the fill-ins that people leave in an .env file."""
    lowered = key.strip().lower()
    return (
        lowered in PLACEHOLDERS or lowered.startswith(("your", "<")) or set(lowered) <= {"x", "*", ".", "-"}
    )


def postgres(address: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's settings of the database at `postgres://USER:PASSWORD@HOST:PORT/NAME`."""
    try:
        # Only for these schemes: the library prints what it does not know, the password included.
        known = address.startswith(("postgres://", "postgresql://"))
        database: dict[str, Any] = environ.Env.db_url_config(address) if known else {}
    except (environ.ImproperlyConfigured, ValueError, KeyError):
        database = {}
    if not database.get("NAME"):
        raise ConfigurationError(
            f"{name} does not name a Postgres database: write it as postgres://USER:PASSWORD@HOST:5432/NAME"
            f" (or leave it empty{' for the embedded one' if name == 'DATABASE_URL' else ''})."
        )
    database.setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
    return database


def check_oidc(issuer: str, client_id: str, client_secret: str, groups: dict[str, str]) -> None:
    if not issuer.startswith("https://") and urlsplit(issuer).hostname not in {"localhost", "127.0.0.1"}:
        raise ConfigurationError("OIDC_ISSUER is not an https address: give that of your login service.")
    needed = {"OIDC_CLIENT_ID": client_id, "OIDC_CLIENT_SECRET": client_secret}
    for name, value in needed.items():
        if is_placeholder(value):
            raise ConfigurationError(
                f"{name} is not set, which OIDC_ISSUER needs: set it to what your login service gave you."
            )
    if not groups:
        raise ConfigurationError(
            "OIDC_GROUPS is not set, so that nobody could enter by OIDC_ISSUER:"
            " set it to groups of your login service and of this site, for example helpdesk-agents=agent."
        )


def check_voyage_dimensions(model: str, dimensions: int) -> None:
    sizes = FIXED_VOYAGE_SIZES.get(model, VOYAGE_SIZES)
    if dimensions not in sizes:
        raise ConfigurationError(
            f"VOYAGE_DIMENSIONS is {dimensions}, which {model} does not offer:"
            f" set it to {' or '.join(str(size) for size in sizes)}."
        )


def _bounds(minimum: int, maximum: int | None) -> str:
    return f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
