"""The rules for `tools` and `tool_choice`, strict schemas included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from assistant.messages_api.errors import JsonObject, invalid
from assistant.messages_api.fields import (
    array,
    boolean,
    check_fields,
    list_of,
    mapping,
    matching,
    one_of,
    optional,
    record,
    string,
    tagged,
)
from assistant.messages_api.models import ModelSpec

# docs: build-with-claude/structured-outputs, "Schema complexity limits"; all count over the whole request.
MAX_STRICT_TOOLS = 20
MAX_OPTIONAL_PARAMETERS = 24
MAX_UNIONS = 16

cache_control = optional(record({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")}))

_TOOL_REQUIRED = {
    "name": matching(r"^[a-zA-Z0-9_-]{1,128}$"),  # docs: tool-use/define-tools
    "input_schema": mapping,
}
_TOOL_OPTIONAL = {
    "type": optional(one_of("custom")),
    "description": string,
    "strict": boolean,
    "cache_control": cache_control,
    "input_examples": list_of(mapping),
    "eager_input_streaming": optional(boolean),
    "defer_loading": boolean,
    "allowed_callers": list_of(one_of("direct")),
}
_CHOICE = tagged(
    {
        "auto": record({"type": string}, {"disable_parallel_tool_use": boolean}),
        "any": record({"type": string}, {"disable_parallel_tool_use": boolean}),
        "tool": record({"type": string, "name": string}, {"disable_parallel_tool_use": boolean}),
        "none": record({"type": string}),
    }
)


def check_tools(tools: object, path: str) -> None:
    """Raise ApiError unless `tools` is a list of sound tool definitions."""
    array(tools, path)
    definitions = cast("list[JsonObject]", tools)
    for index, tool in enumerate(definitions):
        _check_tool(tool, f"{path}.{index}.custom")
    names = [tool["name"] for tool in definitions]
    if len(set(map(str, names))) < len(names):
        raise invalid("tools: Tool names must be unique.")
    _check_complexity([tool for tool in definitions if tool.get("strict")])


def check_choice(body: JsonObject, spec: ModelSpec) -> None:
    """Raise ApiError unless `tool_choice` fits the tools and the model."""
    if "tool_choice" not in body:
        return
    _CHOICE(body["tool_choice"], "tool_choice")
    choice = cast(JsonObject, body["tool_choice"])
    names = {tool["name"] for tool in cast("list[JsonObject]", body.get("tools") or [])}
    if not names:
        raise invalid("tool_choice may only be specified while providing tools")
    if choice["type"] in ("any", "tool") and not spec.forced_tools:  # seen
        raise invalid('tool_choice: type "tool" and "any" are not supported for this model.')
    if choice["type"] == "tool" and choice["name"] not in names:
        raise invalid(f"Tool '{choice['name']}' not found in provided tools")


def _check_tool(tool: object, path: str) -> None:
    check_fields(tool, path, _TOOL_REQUIRED, _TOOL_OPTIONAL)
    definition = cast(JsonObject, tool)
    schema = cast(JsonObject, definition["input_schema"])
    if schema.get("type") != "object":
        raise invalid(f"{path}.input_schema.type: Input should be 'object'")
    for keyword in ("oneOf", "allOf", "anyOf"):  # seen
        if keyword in schema:
            raise invalid(f"{path}.input_schema: input_schema does not support {keyword} at the top level")
    if definition.get("strict"):
        _check_strict(schema, path)


# docs: structured-outputs, "JSON Schema limitations". What is not listed there is refused.
_ANYWHERE = {"type", "description", "title", "default", "enum", "const", "anyOf", "allOf", "$ref", "$defs"}
_OF_TYPE: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties", "definitions"},
    "array": {"items", "minItems"},
    "string": {"format", "pattern"},
    "integer": set(),
    "number": set(),
    "boolean": set(),
    "null": set(),
}
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
_UNSUPPORTED_REGEX = re.compile(r"\(\?[=!<]|\\[1-9bB]")  # lookaround, backreferences, word boundaries


def _check_strict(schema: object, path: str) -> None:
    mapping(schema, path)
    node = cast(JsonObject, schema)
    types = _types(node)
    allowed = _ANYWHERE.union(*(_OF_TYPE.get(name, set()) for name in types))
    for keyword in node:
        if keyword not in allowed:  # seen: "For 'integer' type, property 'minimum' is not supported"
            name = types[0] if types else "object"
            raise invalid(f"{path}: For '{name}' type, property '{keyword}' is not supported")
    for name in types:
        if name not in _OF_TYPE:
            raise invalid(f"{path}: Unknown type '{name}'")
    if "object" in types and node.get("additionalProperties") is not False:  # seen
        raise invalid(f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    _check_values(node, path)
    for child in _children(node):
        _check_strict(child, path)


def _check_values(node: JsonObject, path: str) -> None:
    if node.get("minItems", 0) not in (0, 1):  # seen
        raise invalid(f"{path}: For 'array' type, 'minItems' values other than 0 or 1 are not supported")
    if "format" in node and node["format"] not in _FORMATS:
        raise invalid(f"{path}: For 'string' type, format '{node['format']}' is not supported")
    if _UNSUPPORTED_REGEX.search(str(node.get("pattern", ""))):
        raise invalid(f"{path}: For 'string' type, this 'pattern' is not supported")
    if "$ref" in node and not str(node["$ref"]).startswith("#/$defs/"):
        raise invalid(f"{path}: Only internal '$ref' is supported")
    properties = cast(JsonObject, node.get("properties") or {})
    for name in cast("list[str]", node.get("required") or []):
        if name not in properties:
            raise invalid(f"{path}: required property '{name}' is not defined in 'properties'")


def _types(node: JsonObject) -> list[str]:
    declared = node.get("type")
    if isinstance(declared, str):
        return [declared]
    return [str(name) for name in declared] if isinstance(declared, list) else []


def _children(node: JsonObject) -> Iterator[JsonObject]:
    for keyword in ("properties", "$defs"):
        yield from cast("dict[str, JsonObject]", node.get(keyword) or {}).values()
    for keyword in ("anyOf", "allOf"):
        yield from cast("list[JsonObject]", node.get(keyword) or [])
    if "items" in node:
        yield cast(JsonObject, node["items"])


def _nodes(node: JsonObject) -> Iterator[JsonObject]:
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _check_complexity(strict_tools: list[JsonObject]) -> None:
    nodes = [node for tool in strict_tools for node in _nodes(cast(JsonObject, tool["input_schema"]))]
    optional_count = sum(len(_optional_properties(node)) for node in nodes)
    unions = sum(1 for node in nodes if "anyOf" in node or len(_types(node)) > 1)
    if len(strict_tools) > MAX_STRICT_TOOLS:
        raise invalid(
            f"Too many strict tools ({len(strict_tools)}). The maximum number of strict tools supported is "
            f"{MAX_STRICT_TOOLS}."
        )
    if optional_count > MAX_OPTIONAL_PARAMETERS:
        raise invalid(
            f"Schemas contains too many optional parameters ({optional_count}), which would make grammar "
            "compilation inefficient. Reduce the number of optional parameters in your tool schemas "
            f"(limit: {MAX_OPTIONAL_PARAMETERS})."
        )
    if unions > MAX_UNIONS:
        raise invalid(
            f"Schemas contains too many parameters with union types ({unions}), which would cause "
            "exponential compilation cost. Reduce the number of nullable or union-typed parameters "
            f"(limit: {MAX_UNIONS})."
        )


def _optional_properties(node: JsonObject) -> set[str]:
    required = cast("list[str]", node.get("required") or [])
    return set(cast(JsonObject, node.get("properties") or {})) - set(required)
