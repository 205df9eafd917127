"""The rules for `messages`: blocks, who may send them, and how tool calls and results pair up."""

from __future__ import annotations

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
from assistant.messages_api.signatures import THINKING_TYPES, Ledger, content_of, messages_of
from assistant.messages_api.tools import cache_control

MAX_MESSAGES = 100_000  # docs: api/messages

_ID = matching(r"^[a-zA-Z0-9_-]+$")  # seen
_TEXT = record(
    {"type": string, "text": string},
    {"cache_control": cache_control, "citations": optional(list_of(mapping))},
)
_TOOLSET = {"toolset_name": optional(string)}


def _text_or_blocks(value: object, path: str) -> None:
    if not isinstance(value, str):
        list_of(tagged({"text": _TEXT}))(value, path)


system_prompt = _text_or_blocks

_BLOCKS = {
    "text": _TEXT,
    "thinking": record({"type": string, "thinking": string, "signature": string}),
    "redacted_thinking": record({"type": string, "data": string}),
    "tool_use": record(
        {"type": string, "id": _ID, "name": matching(r"^[a-zA-Z0-9_-]{1,200}$"), "input": mapping},
        {"cache_control": cache_control, "caller": optional(record({"type": one_of("direct")})), **_TOOLSET},
    ),
    "tool_result": record(
        {"type": string, "tool_use_id": _ID},
        {"content": _text_or_blocks, "is_error": boolean, "cache_control": cache_control, **_TOOLSET},
    ),
}
_ROLE_OF_BLOCK = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


def check_messages(value: object, path: str) -> None:
    """Raise ApiError unless `value` is a list of well-formed messages (their order is checked later)."""
    array(value, path)
    messages = cast("list[object]", value)
    if not messages:
        raise invalid("messages: at least one message is required")
    if len(messages) > MAX_MESSAGES:
        raise invalid(f"messages: List should have at most {MAX_MESSAGES} items")
    for index, message in enumerate(messages):
        _check_message(message, f"{path}.{index}")


def check_order(body: JsonObject, spec: ModelSpec, ledger: Ledger) -> None:
    """Raise ApiError unless the messages can follow each other as they do."""
    messages = messages_of(body)
    if messages[0]["role"] != "user":
        raise invalid('messages: first message must use the "user" role')
    for index, message in enumerate(messages):
        _check_content(message, index, last=index == len(messages) - 1)
    _check_tool_pairs(messages)
    _check_end(messages[-1], spec, ledger)


def _check_message(message: object, path: str) -> None:
    check_fields(message, path, {"role": one_of("user", "assistant"), "content": lambda *_: None}, {})
    fields = cast(JsonObject, message)
    if isinstance(fields["content"], str):
        return
    array(fields["content"], f"{path}.content")
    for index, block in enumerate(cast("list[object]", fields["content"])):
        tagged(_BLOCKS)(block, f"{path}.content.{index}")
        kind = str(cast(JsonObject, block)["type"])
        if cast(JsonObject, block).get("citations") and fields["role"] == "user":  # docs: api/versioning
            raise invalid(f"{path}.content.{index}.text.citations: not permitted in `user` messages")
        role = _ROLE_OF_BLOCK.get(kind)
        if role and role != fields["role"]:  # seen
            raise invalid(f"{path}: `{kind}` blocks can only be in `{role}` messages")


def _check_content(message: JsonObject, index: int, *, last: bool) -> None:
    content = content_of(message)
    empty = not content or message["content"] == ""
    if empty and not (last and message["role"] == "assistant"):  # seen
        raise invalid(
            f"messages.{index}: all messages must have non-empty content except for the optional final "
            "assistant message"
        )
    for text in _texts(content):
        check_text(text, "messages")
    if content and message["role"] == "assistant" and content[-1]["type"] in THINKING_TYPES:  # seen
        raise invalid(f"messages.{index}: The final block in an assistant message cannot be `thinking`.")


def check_text(text: str, path: str) -> None:
    """seen: both wordings."""
    if not text:
        raise invalid(f"{path}: text content blocks must be non-empty")
    if not text.strip():
        raise invalid(f"{path}: text content blocks must contain non-whitespace text")


def _texts(content: list[JsonObject]) -> Iterator[str]:
    for block in content:
        if block["type"] == "text":
            yield str(block["text"])
        elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from _texts(cast("list[JsonObject]", block["content"]))


def _check_tool_pairs(messages: list[JsonObject]) -> None:
    """docs: tool-use/handle-tool-calls; the wordings are seen."""
    asked_before: set[str] = set()
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        content = content_of(message)
        _check_results(content, open_ids, index)
        open_ids = _tool_use_ids(content, index, asked_before)
        asked_before.update(open_ids)
    if open_ids:
        raise _unanswered(open_ids, len(messages) - 1)


def _tool_use_ids(content: list[JsonObject], index: int, taken: set[str]) -> list[str]:
    ids: list[str] = []
    for position, block in enumerate(content):
        if block["type"] == "tool_use":
            if block["id"] in taken or block["id"] in ids:
                raise invalid(f"messages.{index}.content.{position}: `tool_use` ids must be unique")
            ids.append(str(block["id"]))
    return ids


def _check_results(content: list[JsonObject], open_ids: list[str], index: int) -> None:
    answered: set[str] = set()
    for position, block in enumerate(content):
        if block["type"] != "tool_result":
            continue
        path, tool_use_id = f"messages.{index}.content.{position}", str(block["tool_use_id"])
        if tool_use_id not in open_ids:
            raise invalid(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {tool_use_id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if tool_use_id in answered:
            raise invalid(
                f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
                f"id: {tool_use_id}"
            )
        if position != len(answered):  # docs: tool_result blocks come first, any text after them
            raise invalid(f"{path}: `tool_result` blocks must come before all other content of the message")
        answered.add(tool_use_id)
    missing = [tool_use_id for tool_use_id in open_ids if tool_use_id not in answered]
    if missing:
        raise _unanswered(missing, index - 1)


def _unanswered(ids: list[str], index: int) -> Exception:
    return invalid(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _check_end(last: JsonObject, spec: ModelSpec, ledger: Ledger) -> None:
    if last["role"] == "user" or ledger.is_paused(content_of(last)):
        return  # docs: handling-stop-reasons, a paused turn is sent back as it came
    if not spec.prefill:  # docs: api/errors#prefill-not-supported
        raise invalid(
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        )
    text = str(content_of(last)[-1].get("text", "")) if content_of(last) else ""
    if text != text.rstrip():  # seen
        raise invalid("messages: final assistant content cannot end with trailing whitespace")
