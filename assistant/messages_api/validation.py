"""Whether a request would be accepted by the real Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from assistant.messages_api.conversation import check_messages, check_order, check_text, system_prompt
from assistant.messages_api.errors import ApiError, JsonObject, invalid
from assistant.messages_api.fields import (
    boolean,
    check_fields,
    integer,
    list_of,
    mapping,
    one_of,
    optional,
    record,
    string,
    tagged,
)
from assistant.messages_api.models import ALL_EFFORTS, MODELS, ModelSpec
from assistant.messages_api.signatures import Ledger, content_of, messages_of
from assistant.messages_api.tools import cache_control, check_choice, check_tools

# docs: api/versioning. The rules of the newest version are applied to both.
API_VERSIONS = ("2026-10-21", "2023-06-01")
MAX_BODY_BYTES = 32 * 1024 * 1024  # docs: api/errors, "Request size limits"
MAX_CACHE_BREAKPOINTS = 4  # docs: build-with-claude/prompt-caching
MIN_THINKING_BUDGET = 1024  # docs: build-with-claude/extended-thinking
BYTES_PER_TOKEN = 3.5

_DISPLAY = {"display": optional(one_of("summarized", "omitted"))}
_THINKING = tagged(
    {
        "adaptive": record({"type": string}, _DISPLAY),
        "enabled": record({"type": string, "budget_tokens": integer}, _DISPLAY),
        "between_tools": record({"type": string}),
        "disabled": record({"type": string}),
    }
)
_OUTPUT_CONFIG = record(
    {},
    {
        "effort": optional(one_of(*sorted(ALL_EFFORTS))),
        "format": optional(record({"type": one_of("json_schema"), "schema": mapping})),
    },
)
_COUNTED = {
    "system": system_prompt,
    "tools": check_tools,
    "tool_choice": mapping,
    "thinking": _THINKING,
    "output_config": _OUTPUT_CONFIG,
    "cache_control": cache_control,
    "speed": optional(one_of("standard", "fast")),
}
# temperature, top_p and top_k are no fields any more. docs: api/versioning, 2026-10-21
_CREATED = {
    **_COUNTED,
    "stream": boolean,
    "metadata": record({}, {"user_id": optional(string)}),
    "stop_sequences": list_of(string),
    "service_tier": one_of("auto", "standard_only"),
    "container": optional(string),
    "inference_geo": optional(string),
}


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """A request that passed: its JSON body, the model's limits and its size in (estimated) tokens."""

    body: JsonObject
    spec: ModelSpec
    input_tokens: int

    @property
    def max_tokens(self) -> int:
        return cast(int, self.body["max_tokens"])

    @property
    def messages(self) -> list[JsonObject]:
        return messages_of(self.body)


def parse_body(raw: bytes) -> object:
    """The JSON value of a request body; ApiError for what is too large or not JSON in sound UTF-8."""
    if len(raw) > MAX_BODY_BYTES:
        raise ApiError(413, "request_too_large", "Request exceeds the maximum size")
    try:
        body: object = json.loads(raw.decode("utf-8"))
        json.dumps(body, ensure_ascii=False).encode("utf-8")  # a lone surrogate fails here
    except UnicodeEncodeError as error:  # seen
        raise invalid("The request body is not valid JSON: no low surrogate in string") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise invalid(f"The request body is not valid JSON: {error}") from error
    return body


def check_headers(headers: Mapping[str, str]) -> None:
    """docs: api/overview. `headers` has lower-case names."""
    if not (headers.get("x-api-key") or headers.get("authorization")):
        raise ApiError(401, "authentication_error", "x-api-key header is required")
    version = headers.get("anthropic-version")
    if version is None:
        raise invalid("anthropic-version: header is required")
    if version not in API_VERSIONS:
        raise invalid(f'anthropic-version: "{version}" is not a valid version')
    if not headers.get("content-type", "").startswith("application/json"):
        raise invalid("content-type: must be application/json")


def validate_request(
    body: object,
    *,
    headers: Mapping[str, str],
    ledger: Ledger,
    models: Mapping[str, ModelSpec] = MODELS,
    counting: bool = False,
) -> MessagesRequest:
    """Check a whole request for `/v1/messages` (or, `counting`, for `/v1/messages/count_tokens`).

    Raises ApiError with the status, type and wording of the real API for the first rule that is broken.
    """
    check_headers(headers)
    required = {"model": string, "messages": check_messages}
    if not counting:
        required["max_tokens"] = integer
    check_fields(body, "", required, _COUNTED if counting else _CREATED)
    fields = cast(JsonObject, body)
    spec = _spec(fields, models)
    if not counting:
        _check_output_limit(fields, spec)
    _check_settings(fields, spec)
    check_choice(fields, spec)
    _check_system(fields)
    check_order(fields, spec, ledger)
    _check_cache_breakpoints(fields)
    ledger.check_thinking(fields)
    return MessagesRequest(fields, spec, _check_size(fields, spec))


def count_tokens(value: object) -> int:
    """An estimate of the tokens of a JSON value; deterministic, and of the right order."""
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "replace")) / BYTES_PER_TOKEN) + 1
    if isinstance(value, dict):
        return sum(1 + count_tokens(item) for item in value.values())
    return sum(count_tokens(item) for item in value) if isinstance(value, list) else 1


def _spec(body: JsonObject, models: Mapping[str, ModelSpec]) -> ModelSpec:
    spec = models.get(str(body["model"]))
    if spec is None:  # seen
        raise ApiError(404, "not_found_error", f"model: {body['model']}")
    return spec


def _check_output_limit(body: JsonObject, spec: ModelSpec) -> None:
    limit = cast(int, body["max_tokens"])
    # The real API takes 0 to warm its cache without an answer; here it can only be a mistake.
    if limit < 1:
        raise invalid("max_tokens: Input should be greater than or equal to 1")
    if limit > spec.max_output:  # seen
        raise invalid(
            f"max_tokens: {limit} > {spec.max_output}, which is the maximum allowed number of output tokens "
            f"for {spec.name}"
        )


def _check_settings(body: JsonObject, spec: ModelSpec) -> None:
    effort = cast(JsonObject, body.get("output_config") or {}).get("effort")
    if effort is not None and not spec.efforts:
        raise invalid("This model does not support the effort parameter.")
    if effort is not None and effort not in spec.efforts:
        raise invalid(f"output_config.effort: '{effort}' is not supported for this model.")
    thinking = cast("JsonObject | None", body.get("thinking"))
    if thinking is not None:
        _check_thinking_setting(thinking, effort, body, spec)


def _check_thinking_setting(thinking: JsonObject, effort: object, body: JsonObject, spec: ModelSpec) -> None:
    kind = str(thinking["type"])
    if kind not in spec.thinking:  # docs: sonnet-5-5/whats-new-sonnet-5-5
        usable = " or ".join(f'"thinking.type.{name}"' for name in sorted(spec.thinking))
        raise invalid(f'"thinking.type.{kind}" is not supported for this model. Use {usable}.')
    if kind == "between_tools" and effort in ("xhigh", "max"):
        raise invalid(f'thinking: "between_tools" is not supported with effort "{effort}".')
    if kind == "enabled":
        _check_budget(cast(int, thinking["budget_tokens"]), body)


def _check_budget(budget: int, body: JsonObject) -> None:
    if budget < MIN_THINKING_BUDGET:
        raise invalid(
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING_BUDGET}"
        )
    if budget >= cast(int, body.get("max_tokens", budget + 1)):  # seen
        raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_system(body: JsonObject) -> None:
    system = body.get("system")
    for block in cast("list[JsonObject]", system) if isinstance(system, list) else []:
        check_text(str(block["text"]), "system")


def _cache_marks(body: JsonObject) -> Iterator[JsonObject]:
    """All cache_control objects in the order in which the prompt is built: tools, system, messages."""
    system = body.get("system")
    blocks = [*cast("list[JsonObject]", body.get("tools") or [])]
    blocks += cast("list[JsonObject]", system) if isinstance(system, list) else []
    for message in messages_of(body):
        for block in content_of(message):
            blocks.append(block)
            inner = block.get("content")
            blocks += cast("list[JsonObject]", inner) if isinstance(inner, list) else []
    for block in [*blocks, body]:
        if block.get("cache_control"):
            yield cast(JsonObject, block["cache_control"])


def _check_cache_breakpoints(body: JsonObject) -> None:
    marks = list(_cache_marks(body))
    if len(marks) > MAX_CACHE_BREAKPOINTS:  # seen
        raise invalid(
            f"A maximum of {MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {len(marks)}."
        )
    lifetimes = [str(mark.get("ttl", "5m")) for mark in marks]
    if lifetimes != sorted(lifetimes):  # seen; "1h" sorts before "5m"
        raise invalid("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")


def _check_size(body: JsonObject, spec: ModelSpec) -> int:
    parts = [body["messages"], body.get("system") or [], body.get("tools") or []]
    tokens = count_tokens(parts)
    if tokens > spec.context_window:  # seen
        raise invalid(f"prompt is too long: {tokens} tokens > {spec.context_window} maximum")
    return tokens
