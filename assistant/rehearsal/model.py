"""The rehearsal model as a model of the local Messages API."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assistant.messages_api.models import MODELS, ModelSpec
from assistant.messages_api.replies import Event, Pace, Reply, Text, play, tokens
from assistant.messages_api.server import MessagesApi
from assistant.messages_api.signatures import Ledger
from assistant.messages_api.validation import MessagesRequest
from assistant.rehearsal.rules import respond

DEFAULT_DELAY = 0.015  # seconds a token: lively, and slow enough to be seen
PAUSE = 20  # tokens' time before the first token


class RehearsalModel:
    """Answers by the rules, at a pace of `delay` seconds a token."""

    def __init__(self, delay: float = DEFAULT_DELAY) -> None:
        self.pace = Pace(first=delay * PAUSE, token=delay)

    async def __call__(self, request: MessagesRequest, ledger: Ledger) -> AsyncIterator[Event]:
        reply = within(respond(request.body), request.max_tokens)
        async for event in play(reply, request, ledger, self.pace):
            yield event


def application(delay: float = DEFAULT_DELAY, model_name: str = "") -> MessagesApi:
    """The application that `manage.py rehearsal_model` serves; it also answers to `model_name`."""
    models = dict(MODELS)
    if model_name:
        models.setdefault(model_name, ModelSpec(model_name))
    return MessagesApi(RehearsalModel(delay), models=models)


def within(reply: Reply, limit: int) -> Reply:
    """The reply, its text cut where the output limit of the request is reached."""
    if len(reply.blocks) != 1 or not isinstance(reply.blocks[0], Text):
        return reply
    pieces = tokens(reply.blocks[0].text)
    if len(pieces) <= limit:
        return reply
    return Reply((Text("".join(pieces[:limit])),), stop_reason="max_tokens")
