"""Arguments of a tool call, checked against its schema and our bounds. No JSON of a model is trusted."""

from __future__ import annotations

from typing import Any

from assistant.tools.definitions import BOUNDS, LENGTHS, MAY_BE_BLANK, SCHEMAS
from assistant.tools.errors import ToolError
from tickets.text import clean_text, is_blank

_TYPES: dict[str, tuple[type, str]] = {"string": (str, "a string"), "integer": (int, "an integer"),
                                       "boolean": (bool, "true or false")}  # fmt: skip


def checked(name: str, given: Any) -> dict[str, Any]:
    """The arguments of tool `name`, texts cleaned; `ToolError` names the first thing that is wrong."""
    schema = SCHEMAS.get(name)
    if schema is None:
        raise ToolError(
            f"There is no tool of this name. The tools are: {', '.join(SCHEMAS)}.", "unknown_tool"
        )
    if not isinstance(given, dict):
        raise ToolError("The arguments must be a JSON object.")
    _check_names(schema, given)
    return {key: _checked_value(name, key, schema["properties"][key], value) for key, value in given.items()}


def _check_names(schema: dict[str, Any], given: dict[str, Any]) -> None:
    known = schema["properties"]
    if unknown := [key for key in given if key not in known]:
        raise ToolError(f"Unknown argument{_listed(unknown)}. This tool takes: {', '.join(known)}.")
    if missing := [key for key in schema["required"] if key not in given]:
        raise ToolError(f"Missing argument{_listed(missing)}.")


def _checked_value(tool: str, key: str, schema: dict[str, Any], value: Any) -> Any:
    expected, words = _TYPES[schema["type"]]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ToolError(f"{key} must be {words}.")
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _within(key, value, BOUNDS[tool].get(key))
    assert isinstance(value, str)
    if "enum" in schema:
        return _one_of(key, value, schema["enum"])
    return _checked_text(tool, key, value)


def _within(key: str, value: int, bounds: tuple[int, int] | None) -> int:
    if bounds and not bounds[0] <= value <= bounds[1]:
        raise ToolError(f"{key} must be between {bounds[0]} and {bounds[1]}.")
    return value


def _one_of(key: str, value: str, choices: list[str]) -> str:
    if value not in choices:
        raise ToolError(f"{key} must be one of: {', '.join(choices)}.")
    return value


def _checked_text(tool: str, key: str, value: str) -> str:
    text = clean_text(value).strip()
    limit = LENGTHS[tool].get(key)
    if limit and len(text) > limit:
        raise ToolError(f"{key} has {len(text)} characters; at most {limit} are allowed.")
    if is_blank(text) and (tool, key) not in MAY_BE_BLANK:
        raise ToolError(f"{key} must not be blank.")
    return text


def _listed(names: list[str]) -> str:
    """The names the model gave, so short that they cannot carry a message."""
    shown = ", ".join(ascii(clean_text(str(one)))[1:-1][:40] for one in names[:5])
    return f"{'s' if len(names) > 1 else ''} {shown}"
