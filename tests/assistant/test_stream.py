"""What comes in from a stream: the same message that the SDK makes of it, whatever the pieces."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from hypothesis import given
from hypothesis import strategies as st

from assistant.stream import IncomingMessage, events_of
from tests.fakes.claude import ScriptedClaude, Text, Thinking, ToolCall

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


async def pieces(body: bytes, sizes: list[int]) -> AsyncIterator[bytes]:
    """`body` in chunks of these sizes, and the rest in one."""
    for size in sizes:
        chunk, body = body[:size], body[size:]
        yield chunk
    yield body


async def read(body: bytes, sizes: list[int]) -> list[dict[str, Any]]:
    return [event async for event in events_of(pieces(body, sizes))]


@given(
    st.lists(st.fixed_dictionaries({"type": st.just("x"), "text": TEXTS}), max_size=5),
    st.lists(st.integers(0, 40), max_size=20),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_survive_any_cut(events: list[dict[str, Any]], sizes: list[int], end: bytes) -> None:
    lines = [b"event: x", b"data: %s"]
    body = b"".join(end.join(lines) % json.dumps(event).encode() + end + end for event in events)
    assert asyncio.run(read(body, sizes)) == events


def test_comments_and_empty_messages_are_no_events() -> None:
    assert asyncio.run(read(b': hello\n\nevent: x\n\ndata:{"type":\ndata: "ping"}\n\n', [])) == [
        {"type": "ping"}
    ]


def test_a_message_that_is_not_complete_is_none() -> None:
    assert asyncio.run(read(b'data: {"type": "ping"}', [])) == []
    with pytest.raises(json.JSONDecodeError):
        asyncio.run(read(b"data: <html>\n\n", []))


async def by_the_sdk(client: AsyncAnthropic, request: dict[str, Any]) -> dict[str, Any]:
    async with client.messages.stream(**request) as stream:
        return (await stream.get_final_message()).to_dict()


async def by_us(client: AsyncAnthropic, request: dict[str, Any]) -> tuple[IncomingMessage, str]:
    message, said = IncomingMessage(), ""
    create = client.messages.with_streaming_response.create
    async with create(**request, stream=True) as response:
        async for event in events_of(response.iter_bytes()):
            said += message.take(event)
    return message, said


async def both(address: str) -> tuple[dict[str, Any], IncomingMessage, str]:
    request = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "thinking": {"type": "adaptive"},
    }
    async with AsyncAnthropic(base_url=address, api_key="test", max_retries=0) as client:
        return await by_the_sdk(client, request), *await by_us(client, request)


def test_the_message_is_the_one_that_the_sdk_makes() -> None:
    reply = (
        Thinking("Let me think."),
        Text("Grüße 👋 aus dem Keller\n\n"),
        ToolCall("look", {"query": "Drucker", "deep": {"list": [1, 2.5, None, True]}}, id="toolu_1"),
        ToolCall("look", {}, id="toolu_2"),
    )
    with ScriptedClaude() as claude:
        claude.reply(*reply)
        claude.reply(*reply)
        expected, message, said = asyncio.run(both(claude.base_url))
    assert said == "Grüße 👋 aus dem Keller\n\n"
    assert message.complete
    assert message.stop_reason == expected["stop_reason"] == "tool_use"
    assert [ours(block) for block in message.content] == [ours(block) for block in expected["content"]]
    assert message.usage["output_tokens"] == expected["usage"]["output_tokens"]
    assert message.usage["input_tokens"] == expected["usage"]["input_tokens"]


def ours(block: dict[str, Any]) -> dict[str, Any]:
    """Without the signature, which the server makes anew for each answer."""
    return {key: value for key, value in block.items() if key != "signature"}


def incoming(*events: dict[str, Any]) -> IncomingMessage:
    message = IncomingMessage()
    for event in events:
        message.take(event)
    return message


def tool_use(arguments: str) -> IncomingMessage:
    return incoming(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "a", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": arguments},
        },
        {"type": "message_stop"},
    )


@pytest.mark.parametrize("arguments", ['{"query": "Dru', "[]", "nonsense", '{"a": 1}}'])
def test_arguments_that_are_no_object_are_unreadable(arguments: str) -> None:
    message = tool_use(arguments)
    assert message.unreadable == {"a"}
    assert message.content[0]["input"] == {}


def test_no_arguments_are_an_empty_object() -> None:
    assert tool_use("").content[0]["input"] == {}
    assert not tool_use("").unreadable


def test_thinking_that_was_cut_off_is_left_out() -> None:
    block = {"type": "thinking", "thinking": "I", "signature": ""}
    message = incoming(
        {"type": "content_block_start", "index": 0, "content_block": block}, {"type": "message_stop"}
    )
    assert message.content == []


def test_what_is_unknown_is_passed_over() -> None:
    message = incoming(
        {"type": "news"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "x": 1}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": None}},
    )
    assert message.content == [{"type": "text", "text": ""}]
    assert message.usage == {}
