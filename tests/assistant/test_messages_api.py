"""The local Messages API: what it refuses, and what it streams to the real SDK."""

import asyncio
import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from anthropic import AsyncAnthropic
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assistant.messages_api.errors import ApiError
from assistant.messages_api.models import MODELS
from assistant.messages_api.replies import tokens
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import MAX_BODY_BYTES, count_tokens, parse_body, validate_request
from tests.fakes.claude import (
    Drop,
    EndEarly,
    ErrorEvent,
    Hang,
    HttpError,
    Malformed,
    Pace,
    RawBody,
    Replay,
    ScriptedClaude,
    Thinking,
    ToolCall,
)

Body = dict[str, Any]

HEADERS = {
    "x-api-key": "test",
    "anthropic-version": "2026-10-21",
    "content-type": "application/json",
}
SCHEMA: Body = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
    "additionalProperties": False,
}
TOOL: Body = {"name": "search", "description": "Searches.", "strict": True, "input_schema": SCHEMA}


def a_body(**changes: Any) -> Body:
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [TOOL],
        "messages": [{"role": "user", "content": "Hello"}],
    }
    return {**copy.deepcopy(body), **changes}


def text(words: str = "Hello") -> Body:
    return {"type": "text", "text": words}


def use(identifier: str = "toolu_1") -> Body:
    return {"type": "tool_use", "id": identifier, "name": "search", "input": {"query": "printer"}}


def result(identifier: str = "toolu_1") -> Body:
    return {"type": "tool_result", "tool_use_id": identifier, "content": "{}"}


def user(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def refusal(body: object, ledger: Ledger | None = None, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        validate_request(body, headers=HEADERS, ledger=ledger or Ledger(), **options)
    return caught.value


def accept(body: object, ledger: Ledger | None = None, **options: Any) -> None:
    validate_request(body, headers=HEADERS, ledger=ledger or Ledger(), **options)


# Headers, body and top-level fields.


@pytest.mark.parametrize(
    ("header", "status", "type"),
    [
        ("x-api-key", 401, "authentication_error"),
        ("anthropic-version", 400, "invalid_request_error"),
        ("content-type", 400, "invalid_request_error"),
    ],
)
def test_headers_are_required(header: str, status: int, type: str) -> None:
    headers = {name: value for name, value in HEADERS.items() if name != header}
    with pytest.raises(ApiError, match=header) as caught:
        validate_request(a_body(), headers=headers, ledger=Ledger())
    assert (caught.value.status, caught.value.type) == (status, type)


def test_key_may_come_as_bearer() -> None:
    headers = {name: value for name, value in HEADERS.items() if name != "x-api-key"}
    validate_request(a_body(), headers={**headers, "authorization": "Bearer k"}, ledger=Ledger())


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff\xfe", b'{"a": "\\ud800"}', b"[" * 100_000, b'{"a": "\xed\xa0\x80"}'],
)
def test_body_must_be_sound_json(raw: bytes) -> None:
    with pytest.raises(ApiError, match="not valid JSON") as caught:
        parse_body(raw)
    assert caught.value.status == 400


def test_body_over_32_mb_is_too_large() -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(b" " * (MAX_BODY_BYTES + 1))
    assert (caught.value.status, caught.value.type) == (413, "request_too_large")


def test_unknown_model_is_not_found() -> None:
    error = refusal(a_body(model="claude-9"))
    assert (error.status, error.type, error.message) == (404, "not_found_error", "model: claude-9")


def many_tools(count: int, **changes: Any) -> list[Body]:
    return [{**TOOL, "name": f"tool_{number}", **changes} for number in range(count)]


def strict_tool(schema: Body) -> list[Body]:
    return [{**TOOL, "input_schema": schema}]


def with_property(**schema: Any) -> list[Body]:
    return strict_tool({**SCHEMA, "properties": {**SCHEMA["properties"], "extra": schema}})


def marked(count: int) -> list[Body]:
    return [{**text(), "cache_control": {"type": "ephemeral"}} for _ in range(count)]


REFUSED: dict[str, tuple[object, str]] = {
    "body is a list": ([], "body: Input should be an object"),
    "body is empty": ({}, "model: Field required"),
    "unknown field": (a_body(temperature=1.0), "temperature: Extra inputs are not permitted"),
    "misspelt field": (a_body(max_token=5), "max_token: Extra inputs are not permitted"),
    "no max_tokens": ({k: v for k, v in a_body().items() if k != "max_tokens"}, "max_tokens: Field required"),
    "max_tokens 0": (a_body(max_tokens=0), "max_tokens: Input should be greater"),
    "max_tokens negative": (a_body(max_tokens=-1), "max_tokens: Input should be greater"),
    "max_tokens text": (a_body(max_tokens="5"), "max_tokens: Input should be a valid integer"),
    "max_tokens true": (a_body(max_tokens=True), "max_tokens: Input should be a valid integer"),
    "max_tokens over cap": (a_body(max_tokens=200_000), "maximum allowed number of output tokens"),
    "stream text": (a_body(stream="yes"), "stream: Input should be a valid boolean"),
    "stop sequences": (a_body(stop_sequences="x"), "stop_sequences: Input should be a valid list"),
    "metadata": (a_body(metadata={"name": "x"}), "metadata.name: Extra inputs"),
    "effort": (a_body(output_config={"effort": "extreme"}), "output_config.effort: Input should be"),
    "effort unknown to old model": (
        a_body(model="claude-haiku-4-5", output_config={"effort": "low"}),
        "does not support the effort parameter",
    ),
    "thinking disabled": (a_body(thinking={"type": "disabled"}), '"thinking.type.disabled" is not supported'),
    "thinking enabled": (
        a_body(thinking={"type": "enabled", "budget_tokens": 1024}),
        '"thinking.type.enabled" is not supported',
    ),
    "thinking unknown": (a_body(thinking={"type": "deep"}), "does not match any of the expected tags"),
    "thinking display": (a_body(thinking={"type": "adaptive", "display": "all"}), "thinking.display"),
    "between_tools with much effort": (
        a_body(thinking={"type": "between_tools"}, output_config={"effort": "max"}),
        "not supported with effort",
    ),
    "budget too small": (
        a_body(model="claude-haiku-4-5", thinking={"type": "enabled", "budget_tokens": 10}),
        "greater than or equal to 1024",
    ),
    "budget over max_tokens": (
        a_body(model="claude-haiku-4-5", thinking={"type": "enabled", "budget_tokens": 2000}),
        "must be greater than `thinking.budget_tokens`",
    ),
    "system blank": (a_body(system=[text(" ")]), "system: text content blocks must contain non-whitespace"),
    "system with a tool": (a_body(system=[use()]), "does not match any of the expected tags"),
    "five cache marks": (a_body(messages=[user(*marked(4))]), "A maximum of 4 blocks.*Found 5"),
    "cache ttl": (
        a_body(cache_control={"type": "ephemeral", "ttl": "2h"}),
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
    "long cache after short": (
        a_body(messages=[user({**text(), "cache_control": {"type": "ephemeral", "ttl": "1h"}})]),
        "must not come after",
    ),
    # Messages.
    "no messages": (a_body(messages=[]), "at least one message is required"),
    "messages text": (a_body(messages="hi"), "messages: Input should be a valid list"),
    "role": (a_body(messages=[{"role": "tool", "content": "x"}]), "messages.0.role: Input should be"),
    "name in message": (
        a_body(messages=[{"role": "user", "content": "x", "name": "al"}]),
        "messages.0.name: Extra inputs are not permitted",
    ),
    "no content": (a_body(messages=[{"role": "user"}]), "messages.0.content: Field required"),
    "content number": (a_body(messages=[{"role": "user", "content": 5}]), "messages.0.content"),
    "first is assistant": (a_body(messages=[assistant(text()), user(text())]), "first message must use"),
    "empty string": (a_body(messages=[{"role": "user", "content": ""}]), "must have non-empty content"),
    "empty list": (a_body(messages=[user()]), "must have non-empty content"),
    "empty text": (a_body(messages=[user(text(""))]), "text content blocks must be non-empty"),
    "blank text": (a_body(messages=[user(text(" \n\t"))]), "must contain non-whitespace text"),
    "blank string": (
        a_body(messages=[{"role": "user", "content": "  "}]),
        "must contain non-whitespace text",
    ),
    "empty assistant in the middle": (
        a_body(messages=[user(text()), assistant(), user(text())]),
        "messages.1: all messages must have non-empty content",
    ),
    "unknown block": (a_body(messages=[user({"type": "video"})]), "does not match any of the expected tags"),
    "block without type": (
        a_body(messages=[user({"text": "x"})]),
        "messages.0.content.0.type: Field required",
    ),
    "unknown block field": (
        a_body(messages=[user({**text(), "parsed_output": None})]),
        "messages.0.content.0.parsed_output: Extra inputs are not permitted",
    ),
    "prefill": (
        a_body(messages=[user(text()), assistant(text())]),
        "does not support assistant message prefill",
    ),
    "prefill with trailing space": (
        a_body(model="claude-haiku-4-5", messages=[user(text()), assistant(text("So "))]),
        "cannot end with trailing whitespace",
    ),
    "citations of a user": (
        a_body(messages=[user({**text(), "citations": [{"type": "char_location"}]})]),
        "citations: not permitted",
    ),
    "thinking of a user": (
        a_body(messages=[user({"type": "thinking", "thinking": "x", "signature": "x"})]),
        "`thinking` blocks can only be in `assistant` messages",
    ),
    "thinking without signature": (
        a_body(
            messages=[user(text()), assistant({"type": "thinking", "thinking": "x"}, text()), user(text())]
        ),
        "signature: Field required",
    ),
    "foreign thinking": (
        a_body(
            messages=[
                user(text()),
                assistant({"type": "thinking", "thinking": "x", "signature": "abc="}, text()),
                user(text()),
            ]
        ),
        "messages.1.content.0: Invalid `signature` in `thinking` block$",
    ),
    "prompt too long": (
        a_body(messages=[user(text("word " * 1_000_000))]),
        r"prompt is too long: \d+ tokens > 1000000 maximum",
    ),
    # Tool calls and results.
    "unanswered call": (
        a_body(messages=[user(text()), assistant(use()), user(text())]),
        r"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1\.",
    ),
    "unanswered call at the end": (
        a_body(messages=[user(text()), assistant(use())]),
        "ids were found without",
    ),
    "half answered": (
        a_body(messages=[user(text()), assistant(use("a"), use("b")), user(result("a"))]),
        "immediately after: b",
    ),
    "answer too late": (
        a_body(messages=[user(text()), assistant(use()), user(text()), user(result())]),
        "ids were found without",
    ),
    "unknown result": (
        a_body(messages=[user(text()), assistant(use()), user(result(), result("x"))]),
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: x",
    ),
    "result of nothing": (a_body(messages=[user(result())]), "unexpected `tool_use_id`"),
    "two results": (
        a_body(messages=[user(text()), assistant(use()), user(result(), result())]),
        "each tool_use must have a single result",
    ),
    "text before result": (
        a_body(messages=[user(text()), assistant(use()), user(text(), result())]),
        "must come before all other content",
    ),
    "id used twice": (
        a_body(messages=[user(text()), assistant(use()), user(result()), assistant(use()), user(result())]),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "id used twice in one message": (
        a_body(messages=[user(text()), assistant(use(), use()), user(result())]),
        "`tool_use` ids must be unique",
    ),
    "id pattern": (
        a_body(messages=[user(text()), assistant(use("a b")), user(result("a b"))]),
        "String should match pattern",
    ),
    "input not an object": (
        a_body(messages=[user(text()), assistant({**use(), "input": "{}"}), user(result())]),
        "input: Input should be an object",
    ),
    "call of a user": (
        a_body(messages=[user(use())]),
        "`tool_use` blocks can only be in `assistant` messages",
    ),
    "result of the assistant": (
        a_body(messages=[user(text()), assistant(result()), user(text())]),
        "`tool_result` blocks can only be in `user` messages",
    ),
    "blank text in result": (
        a_body(messages=[user(text()), assistant(use()), user({**result(), "content": [text(" ")]})]),
        "must contain non-whitespace text",
    ),
    "is_error text": (
        a_body(messages=[user(text()), assistant(use()), user({**result(), "is_error": "no"})]),
        "is_error: Input should be a valid boolean",
    ),
    # Tools.
    "tools object": (a_body(tools={}), "tools: Input should be a valid list"),
    "tool name": (a_body(tools=[{**TOOL, "name": "do it"}]), "String should match pattern"),
    "tool name too long": (a_body(tools=[{**TOOL, "name": "x" * 129}]), "String should match pattern"),
    "same tool twice": (a_body(tools=[TOOL, TOOL]), "Tool names must be unique"),
    "no schema": (a_body(tools=[{"name": "x"}]), "tools.0.custom.input_schema: Field required"),
    "schema not of an object": (a_body(tools=strict_tool({"type": "string"})), "Input should be 'object'"),
    "unknown tool field": (a_body(tools=[{**TOOL, "parameters": {}}]), "parameters: Extra inputs"),
    "union at the top": (a_body(tools=strict_tool({**SCHEMA, "anyOf": []})), "does not support anyOf"),
    "open object": (
        a_body(tools=strict_tool({**SCHEMA, "additionalProperties": True})),
        "'additionalProperties' must be explicitly set to false",
    ),
    "open inner object": (a_body(tools=with_property(type="object")), "must be explicitly set to false"),
    "minLength": (
        a_body(tools=with_property(type="string", minLength=1)),
        "property 'minLength' is not supported",
    ),
    "maximum": (
        a_body(tools=with_property(type="integer", maximum=20)),
        "For 'integer' type, property 'maximum' is not supported",
    ),
    "maxItems": (
        a_body(tools=with_property(type="array", items={"type": "string"}, maxItems=3)),
        "property 'maxItems' is not supported",
    ),
    "minItems 2": (
        a_body(tools=with_property(type="array", minItems=2)),
        "'minItems' values other than 0 or 1",
    ),
    "bound in items": (
        a_body(tools=with_property(type="array", items={"type": "integer", "minimum": 1})),
        "property 'minimum' is not supported",
    ),
    "format": (a_body(tools=with_property(type="string", format="color")), "format 'color' is not supported"),
    "lookahead": (
        a_body(tools=with_property(type="string", pattern="(?=a)")),
        "this 'pattern' is not supported",
    ),
    "foreign reference": (a_body(tools=with_property(**{"$ref": "http://x"})), "Only internal '\\$ref'"),
    "type": (a_body(tools=with_property(type="text")), "Unknown type 'text'"),
    "required but missing": (a_body(tools=strict_tool({**SCHEMA, "required": ["q"]})), "'q' is not defined"),
    "21 strict tools": (a_body(tools=many_tools(21)), "Too many strict tools \\(21\\)"),
    "25 optional parameters": (
        a_body(
            tools=strict_tool(
                {**SCHEMA, "required": [], "properties": {f"p{n}": {"type": "string"} for n in range(25)}}
            )
        ),
        "too many optional parameters \\(25\\)",
    ),
    "17 unions": (
        a_body(
            tools=strict_tool(
                {
                    **SCHEMA,
                    "required": [f"p{n}" for n in range(17)],
                    "properties": {f"p{n}": {"type": ["string", "null"]} for n in range(17)},
                }
            )
        ),
        "union types \\(17\\)",
    ),
    "choice unknown": (a_body(tool_choice={"type": "maybe"}), "does not match any of the expected tags"),
    "choice text": (a_body(tool_choice="auto"), "tool_choice: Input should be an object"),
    "choice without tools": (a_body(tools=[], tool_choice={"type": "auto"}), "only be specified while"),
    "forced tool": (a_body(tool_choice={"type": "any"}), 'type "tool" and "any" are not supported'),
    "forced unknown tool": (
        a_body(model="claude-sonnet-5", tool_choice={"type": "tool", "name": "x"}),
        "Tool 'x' not found",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    body, message = REFUSED[name]
    error = refusal(body)
    assert (error.status, error.type) == (400, "invalid_request_error")
    assert re.search(message, error.message), error.message


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"system": "Be brief."},
        {"stream": True, "metadata": {"user_id": "u"}, "stop_sequences": ["END"]},
        {"tool_choice": {"type": "none"}},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"model": "claude-sonnet-5", "tool_choice": {"type": "tool", "name": "search"}},
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "high"}},
        {
            "model": "claude-haiku-4-5",
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        {"model": "claude-haiku-4-5", "messages": [user(text()), assistant(text("So"))]},
        {"messages": [user(*marked(3))]},
        {"messages": [user(text()), user(text())]},
        {
            "messages": [
                user(text()),
                assistant(text(), use("a"), use("b")),
                user(result("b"), result("a"), text()),
            ]
        },
        {
            "messages": [
                user(text()),
                assistant(use()),
                user({**result(), "content": [text()], "is_error": True}),
            ]
        },
        {
            "messages": [
                user({**text(), "citations": None}),
                assistant({**text(), "citations": None}, {**use(), "caller": {"type": "direct"}}),
                user({**result(), "toolset_name": None}),
            ]
        },
        {"tools": many_tools(30, strict=False)},
        {"tools": [{**TOOL, "strict": False, "input_schema": {"type": "object"}}]},
        {"tools": with_property(type="string", enum=["a", "b"], pattern="^a+$")},
        {"tools": with_property(anyOf=[{"type": "string"}, {"type": "null"}])},
    ],
)
def test_accepts(changes: Body) -> None:
    accept(a_body(**changes))


@pytest.mark.parametrize("name", ["max_tokens", "stream", "metadata"])
def test_count_tokens_takes_no_field_of_generation(name: str) -> None:
    body = {key: value for key, value in a_body().items() if key != "max_tokens"}
    accept(body, counting=True)
    assert "Extra inputs" in refusal({**body, name: 5}, counting=True).message


# Thinking.


def conversation_with_thinking(ledger: Ledger) -> Body:
    """Two answers that think, both signed by `ledger`; the second follows a tool result."""
    body = a_body()
    for content in ([use()], [text("Done.")]):
        signature = ledger.sign("Let me see.", body, [])
        thinking = {"type": "thinking", "thinking": "Let me see.", "signature": signature}
        following = user(result()) if content[0]["type"] == "tool_use" else user(text("And now?"))
        body["messages"] = [*body["messages"], assistant(thinking, *content), following]
    return body


def test_unchanged_thinking_is_accepted() -> None:
    ledger = Ledger()
    accept(conversation_with_thinking(ledger), ledger)


CHANGES_BEFORE_THINKING: dict[str, Callable[[Body], object]] = {
    "text of the person": lambda body: body["messages"][0].update(content="Hello!"),
    "system": lambda body: body["system"][0].update(text="Be long."),
    "tools": lambda body: body["tools"][0].update(description="Else."),
    "tool result": lambda body: body["messages"][2]["content"][0].update(content="{ }"),
    "tool input": lambda body: body["messages"][1]["content"][1].update(input={"query": "x"}),
    "message inserted": lambda body: body["messages"].insert(0, user(text("Earlier"))),
    "block moved": lambda body: body["messages"][1]["content"].reverse(),
}


@pytest.mark.parametrize("name", CHANGES_BEFORE_THINKING)
def test_thinking_is_bound_to_what_stood_before_it(name: str) -> None:
    ledger = Ledger()
    body = conversation_with_thinking(ledger)
    CHANGES_BEFORE_THINKING[name](body)
    assert re.search(
        "bound to a different conversation|final block", refusal(body, ledger).message, re.IGNORECASE
    )


def test_cache_marks_may_move_before_thinking() -> None:
    ledger = Ledger()
    body = conversation_with_thinking(ledger)
    del body["system"][0]["cache_control"]
    body["messages"][0]["content"] = marked(1)
    accept(body, ledger)


def test_leading_thinking_may_be_left_out_but_changed_thinking_not() -> None:
    ledger = Ledger()
    body = conversation_with_thinking(ledger)
    shortened = copy.deepcopy(body)
    del shortened["messages"][1]["content"][0]
    accept(shortened, ledger)
    body["messages"][1]["content"][0]["thinking"] += " "
    assert "Invalid `signature`" in refusal(body, ledger).message


def test_thinking_of_another_model_is_ignored_and_of_another_server_refused() -> None:
    ledger = Ledger()
    body = conversation_with_thinking(ledger)
    accept({**body, "model": "claude-opus-5-5"}, ledger)
    assert "Invalid `signature`" in refusal(body, Ledger()).message


def test_thinking_that_was_issued_with_a_call_must_come_back_with_it() -> None:
    ledger = Ledger()
    body = conversation_with_thinking(ledger)
    body["messages"] = body["messages"][:3]
    ledger.remember(copy.deepcopy(body["messages"][1]["content"]), paused=False)
    accept(body, ledger)
    del body["messages"][1]["content"][0]
    assert "in the latest assistant message cannot be modified" in refusal(body, ledger).message


def test_paused_answer_is_sent_back_as_it_came() -> None:
    ledger = Ledger()
    ledger.remember([text("Half")], paused=True)
    accept(a_body(messages=[user(text()), assistant(text("Half"))]), ledger)
    accept(a_body(messages=[user(text()), assistant(text("First"), *marked(1), text("Half"))]), ledger)
    assert "prefill" in refusal(a_body(messages=[user(text()), assistant(text("Other"))]), ledger).message


# Any conversation that a sound loop can produce passes; one corruption of it does not.

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(
    str.strip
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Body, Ledger]:
    """A request after some turns with tool rounds and thinking, and the ledger that issued it."""
    ledger = Ledger(b"key")
    body = a_body(messages=[], model=draw(st.sampled_from(sorted(MODELS))))
    counter = iter(range(10_000))
    for _ in range(draw(st.integers(1, 3))):
        body["messages"] = [
            *body["messages"],
            user(*map(text, draw(st.lists(WORDS, min_size=1, max_size=2)))),
        ]
        for _ in range(draw(st.integers(0, 2))):
            _answer(draw, body, ledger, [use(f"t{next(counter)}") for _ in range(draw(st.integers(1, 3)))])
        _answer(draw, body, ledger, [])
    body["messages"] = [*body["messages"], user(text(draw(WORDS)))]
    return body, ledger


def _answer(draw: st.DrawFn, body: Body, ledger: Ledger, calls: list[Body]) -> None:
    content: list[Body] = []
    if draw(st.booleans()):
        thought = draw(st.text(st.characters(codec="utf-8"), max_size=10))
        signature = ledger.sign(thought, body, [])
        content.append({"type": "thinking", "thinking": thought, "signature": signature})
    if draw(st.booleans()) or not calls:
        content.append(text(draw(WORDS)))
    body["messages"] = [*body["messages"], assistant(*content, *calls)]
    if calls:
        results = [result(call["id"]) for call in draw(st.permutations(calls))]
        extra = [text(draw(WORDS))] if draw(st.booleans()) else []
        body["messages"] = [*body["messages"], user(*results, *extra)]


@given(conversations())
def test_any_sound_conversation_passes(conversation: tuple[Body, Ledger]) -> None:
    body, ledger = conversation
    accept(json.loads(json.dumps(body)), ledger)


def _blocks(body: Body, kind: str) -> list[tuple[list[Body], int]]:
    return [
        (message["content"], position)
        for message in body["messages"]
        for position, block in enumerate(message["content"])
        if block["type"] == kind
    ]


def _remove(places: list[tuple[list[Body], int]], which: int) -> None:
    content, position = places[which % len(places)]
    del content[position]


def _change(places: list[tuple[list[Body], int]], which: int, **fields: Any) -> None:
    content, position = places[which % len(places)]
    content[position] = {**content[position], **fields}


def _copy(places: list[tuple[list[Body], int]], which: int) -> None:
    content, position = places[which % len(places)]
    content.insert(position, content[position])


CORRUPTIONS: dict[str, Callable[[Body, int], object]] = {
    "result removed": lambda b, n: _remove(_blocks(b, "tool_result"), n),
    "call removed": lambda b, n: _remove(_blocks(b, "tool_use"), n),
    "result doubled": lambda b, n: _copy(_blocks(b, "tool_result"), n),
    "call doubled": lambda b, n: _copy(_blocks(b, "tool_use"), n),
    "result renamed": lambda b, n: _change(_blocks(b, "tool_result"), n, tool_use_id="other"),
    "call renamed": lambda b, n: _change(_blocks(b, "tool_use"), n, id="other"),
    "text emptied": lambda b, n: _change(_blocks(b, "text"), n, text=""),
    "text blanked": lambda b, n: _change(_blocks(b, "text"), n, text=" \n"),
    "block field added": lambda b, n: _change(_blocks(b, "text"), n, index=0),
    "block type changed": lambda b, n: _change(_blocks(b, "text"), n, type="txt"),
    "thinking forged": lambda b, n: _change(_blocks(b, "thinking"), n, thinking="forged thought"),
    "signature lost": lambda b, n: _change(_blocks(b, "thinking"), n, signature=""),
    "message emptied": lambda b, n: b["messages"][n % len(b["messages"])].update(content=[]),
    "role unknown": lambda b, n: b["messages"][n % len(b["messages"])].update(role="system"),
    "roles swapped": lambda b, n: b["messages"][0].update(role="assistant"),
    "field added": lambda b, n: b.update(top_p=0.5),
    "model unknown": lambda b, n: b.update(model="gpt"),
}


@settings(max_examples=15)
@pytest.mark.parametrize("name", CORRUPTIONS)
@given(conversation=conversations(), which=st.integers(0, 1000))
def test_one_corruption_is_refused(name: str, conversation: tuple[Body, Ledger], which: int) -> None:
    body, ledger = copy.deepcopy(conversation)
    kinds = {"result": "tool_result", "call": "tool_use", "thinking": "thinking", "signature": "thinking"}
    needed = kinds.get(name.split()[0])
    assume(needed is None or _blocks(body, needed))
    CORRUPTIONS[name](body, which)
    refusal(body, ledger)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["model", "messages", "role", "content", "type", "text", "x"]), inner
            )
        ),
        max_leaves=10,
    )
)
def test_nonsense_is_refused_in_the_same_form(body: object) -> None:
    assert refusal(body).status in (400, 404)


@given(st.text())
def test_tokens_make_up_the_text(words: str) -> None:
    assert "".join(tokens(words)) == words
    assert count_tokens(words) >= 1


# The server, and the scripted Claude, over HTTP with the real SDK.


@pytest.fixture
def claude() -> Iterator[ScriptedClaude]:
    with ScriptedClaude() as server:
        yield server


async def ask(claude: ScriptedClaude, messages: list[Any] | None = None, patience: float = 5) -> Any:
    """The final message of one streamed request."""
    body = a_body()
    async with (
        AsyncAnthropic(base_url=claude.base_url, api_key="test", max_retries=0, timeout=patience) as client,
        client.messages.stream(**{**body, "messages": messages or body["messages"]}) as stream,
    ):
        return await stream.get_final_message()


async def test_streams_thinking_text_and_calls(claude: ScriptedClaude) -> None:
    call = ToolCall("search", {"query": "Drücker – „kaputt“ 🖨️"})
    claude.reply(
        Thinking("Let me look."), "I look.\n\nNow.  ", call, ToolCall("search"), usage={"output_tokens": 77}
    )
    message = await ask(claude)
    thinking, words, first, second = message.content
    assert thinking.thinking == "Let me look."
    assert words.text == "I look.\n\nNow.  "
    assert (first.name, first.input) == ("search", {"query": "Drücker – „kaputt“ 🖨️"})
    assert second.input == {}
    assert first.id != second.id
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 77)
    fragments = [e for e in claude.requests[0].events if e.get("delta", {}).get("type") == "input_json_delta"]  # type: ignore[attr-defined]
    assert len(fragments) > 3


async def test_an_answer_can_be_sent_back_as_the_sdk_gave_it(claude: ScriptedClaude) -> None:
    claude.reply(Thinking("Let me look."), ToolCall("search", {"query": "x"})).reply("Done.")
    first = await ask(claude)
    content = [block.to_dict() for block in first.content]
    history = [*a_body()["messages"], assistant(*content), user(result(first.content[1].id))]
    assert (await ask(claude, history)).content[0].text == "Done."
    assert claude.requests[1].tool_results()[0]["tool_use_id"] == first.content[1].id
    assert claude.unused == 0


@pytest.mark.parametrize(
    "reason",
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "refusal",
        "pause_turn",
        "model_context_window_exceeded",
        "new",
    ],
)
async def test_every_ending(claude: ScriptedClaude, reason: str) -> None:
    claude.reply("So far.", stop_reason=reason)
    message = await ask(claude)
    assert (message.stop_reason, message.content[0].text) == (reason, "So far.")


async def test_empty_answer_and_broken_off_call(claude: ScriptedClaude) -> None:
    claude.reply(stop_reason="end_turn")
    assert (await ask(claude)).content == []
    claude.reply(ToolCall("search", partial_json='{"query": "pri'), stop_reason="max_tokens")
    assert (await ask(claude)).stop_reason == "max_tokens"


async def test_without_streaming_the_message_is_the_same(claude: ScriptedClaude) -> None:
    claude.reply(Thinking("Hm."), "Text", ToolCall("search", {"query": "x"}), stop_reason="tool_use")
    async with AsyncAnthropic(base_url=claude.base_url, api_key="test", max_retries=0) as client:
        message = await client.messages.create(**a_body())
        counted = await client.messages.count_tokens(model="claude-sonnet-5-5", messages=a_body()["messages"])
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "text", "tool_use"]
    assert message.content[2].to_dict()["input"] == {"query": "x"}
    assert counted.input_tokens > 0
    assert [exchange.path for exchange in claude.counts] == ["/v1/messages/count_tokens"]


FAULTS: list[tuple[Any, type[BaseException], int | None]] = [
    (HttpError("authentication_error"), anthropic.AuthenticationError, 401),
    (HttpError("invalid_request_error"), anthropic.BadRequestError, 400),
    (HttpError("permission_error"), anthropic.PermissionDeniedError, 403),
    (HttpError("not_found_error"), anthropic.NotFoundError, 404),
    (HttpError("request_too_large"), anthropic.RequestTooLargeError, 413),
    (HttpError("rate_limit_error", headers={"retry-after": "3"}), anthropic.RateLimitError, 429),
    (HttpError("api_error"), anthropic.InternalServerError, 500),
    (HttpError("overloaded_error"), anthropic.OverloadedError, 529),
    (ErrorEvent(0), anthropic.OverloadedError, 529),
    (ErrorEvent(4), anthropic.APIStatusError, 200),
    (Drop(0), anthropic.APIConnectionError, None),
    (Drop(4), httpx2.RemoteProtocolError, None),
    (Hang(0), anthropic.APITimeoutError, None),
    (Hang(4), httpx2.ReadTimeout, None),
    (Malformed(3), ValueError, None),
    (RawBody(), anthropic.InternalServerError, 502),
    (RawBody(200), AssertionError, None),
    (RawBody(200, b"", "text/event-stream"), AssertionError, None),
]


@pytest.mark.parametrize(("fault", "exception", "status"), FAULTS, ids=lambda value: str(value)[:40])
async def test_every_fault(
    claude: ScriptedClaude, fault: Any, exception: type[BaseException], status: int | None
) -> None:
    claude.fail(fault)
    with pytest.raises(exception) as caught:
        await ask(claude, patience=0.3)
    assert getattr(caught.value, "status_code", None) == status
    if isinstance(fault, HttpError):
        response = caught.value.response  # type: ignore[attr-defined]
        assert response.headers["request-id"].startswith("req_")
        assert response.headers.get("retry-after") == fault.headers.get("retry-after")


async def test_pings_keep_a_hanging_stream_alive(claude: ScriptedClaude) -> None:
    claude.fail(Hang(4, ping=0.05))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(claude, patience=0.3), 0.8)


async def test_early_end_leaves_no_stop_reason(claude: ScriptedClaude) -> None:
    claude.fail(EndEarly(5))
    message = await ask(claude)
    assert (message.stop_reason, message.content[0].text) == (
        None,
        "This answer"[: len(message.content[0].text)],
    )


async def test_replay_repeats_ids(claude: ScriptedClaude) -> None:
    claude.reply(ToolCall("search", {"query": "x"})).fail(Replay())
    first, second = await ask(claude), await ask(claude)
    assert first.content[0].id == second.content[0].id
    assert first.id == second.id


async def test_notices_that_the_client_went_away(claude: ScriptedClaude) -> None:
    claude.reply("word " * 100, pace=Pace(0, 0.05))
    async with (
        AsyncAnthropic(base_url=claude.base_url, api_key="test", max_retries=0) as client,
        client.messages.stream(**a_body()) as stream,
    ):
        async for _ in stream.text_stream:
            break
    assert await asyncio.to_thread(claude.requests[0].closed_by_client.wait, 2)
    assert not claude.requests[0].finished.is_set()


async def test_notices_it_even_before_the_first_event(claude: ScriptedClaude) -> None:
    claude.fail(Hang(0))
    with pytest.raises(anthropic.APITimeoutError):
        await ask(claude, patience=0.2)
    assert await asyncio.to_thread(claude.requests[0].closed_by_client.wait, 2)


async def test_keeps_its_pace(claude: ScriptedClaude) -> None:
    claude.reply("a b c d e", pace=Pace(0.2, 0.02))
    started = time.monotonic()
    await ask(claude)
    assert 0.28 <= time.monotonic() - started < 2


async def test_a_refused_request_fails_the_test_that_sent_it() -> None:
    claude = ScriptedClaude().start()
    with pytest.raises(anthropic.BadRequestError):
        await ask(claude, [user()])
    with pytest.raises(AssertionError, match="must have non-empty content"):
        claude.__exit__(None, None, None)


async def test_an_unexpected_request_fails_the_test_that_sent_it() -> None:
    claude = ScriptedClaude().start()
    with pytest.raises(anthropic.InternalServerError):
        await ask(claude)
    with pytest.raises(AssertionError, match="no answer left"):
        claude.__exit__(None, None, None)


async def test_other_addresses_are_not_found(claude: ScriptedClaude) -> None:
    async with httpx.AsyncClient(base_url=claude.base_url) as client:
        answer = await client.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert answer.headers["request-id"] == answer.json()["request_id"]
