"""Field-by-field checks of JSON objects, with the wording of the real API (seen: pydantic messages)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

from assistant.messages_api.errors import JsonObject, invalid

Check = Callable[[object, str], None]


def string(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise invalid(f"{path}: Input should be a valid string")


def boolean(value: object, path: str) -> None:
    if not isinstance(value, bool):
        raise invalid(f"{path}: Input should be a valid boolean")


def integer(value: object, path: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(f"{path}: Input should be a valid integer")


def array(value: object, path: str) -> None:
    if not isinstance(value, list):
        raise invalid(f"{path}: Input should be a valid list")


def mapping(value: object, path: str) -> None:
    if not isinstance(value, dict):
        raise invalid(f"{path}: Input should be an object")


def matching(pattern: str) -> Check:
    """A string that matches the whole of `pattern`."""
    compiled = re.compile(pattern)

    def check(value: object, path: str) -> None:
        string(value, path)
        if not compiled.fullmatch(cast(str, value)):
            raise invalid(f"{path}: String should match pattern '{pattern}'")

    return check


def one_of(*allowed: str) -> Check:
    expected = " or ".join(f"'{name}'" for name in allowed)

    def check(value: object, path: str) -> None:
        if value not in allowed:
            raise invalid(f"{path}: Input should be {expected}")

    return check


def optional(check: Check) -> Check:
    """`null` or what `check` accepts."""

    def check_unless_null(value: object, path: str) -> None:
        if value is not None:
            check(value, path)

    return check_unless_null


def list_of(check: Check) -> Check:
    def check_items(value: object, path: str) -> None:
        array(value, path)
        for index, item in enumerate(cast("list[object]", value)):
            check(item, f"{path}.{index}")

    return check_items


def record(required: Mapping[str, Check], extra: Mapping[str, Check] | None = None) -> Check:
    """An object with exactly these fields, the `extra` ones optional."""

    def check(value: object, path: str) -> None:
        check_fields(value, path, required, extra or {})

    return check


def tagged(variants: Mapping[str, Check]) -> Check:
    """An object whose `type` names the check for it."""
    expected = ", ".join(f"'{name}'" for name in sorted(variants))

    def check(value: object, path: str) -> None:
        mapping(value, path)
        tag = cast(JsonObject, value).get("type")
        if tag is None:
            raise invalid(f"{path}.type: Field required")
        if not isinstance(tag, str) or tag not in variants:
            raise invalid(
                f"{path}: Input tag '{tag}' found using 'type' does not match any of the expected tags: "
                f"{expected}"
            )
        variants[tag](value, path)

    return check


def check_fields(value: object, path: str, required: Mapping[str, Check], extra: Mapping[str, Check]) -> None:
    """Raise for a missing, an unknown or a wrongly typed field of the object `value`."""
    mapping(value, path or "body")
    fields = cast(JsonObject, value)
    prefix = f"{path}." if path else ""
    for name in required:
        if name not in fields:
            raise invalid(f"{prefix}{name}: Field required")
    for name, item in fields.items():
        check = required.get(name) or extra.get(name)
        if check is None:
            raise invalid(f"{prefix}{name}: Extra inputs are not permitted")
        check(item, f"{prefix}{name}")
