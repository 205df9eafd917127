"""Every way a turn can end without a whole answer: its code, its sentence, and what a fault of the line
means.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from assistant.clock import clock
from assistant.numbers import lazy_grouped

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SENTENCES: dict[str, StrOrPromise] = {
    # Faults of the line
    "key_refused": _("The model refused the API key. An administrator has to check ANTHROPIC_API_KEY."),
    "forbidden": _(
        "The API key may not use this model or feature. An administrator has to check its permissions."
    ),
    "payment": _("The account behind the API key has no credit left. An administrator has to top it up."),
    "model_unknown": _(
        'The model "{model}" is not known there. An administrator has to check ASSISTANT_MODEL.'
    ),
    "unreachable_api": _("The address set as ANTHROPIC_BASE_URL does not speak the Messages API."),
    "bad_request": _(
        "The model rejected the request as invalid. This is a fault of this product; the log has the details."
    ),
    "too_large": _(
        "The request is too large for the model. Please start a new conversation or send a shorter text."
    ),
    "prompt_too_long": _("The conversation is too long for the model. Please start a new one."),
    "signature": _("The model rejected the earlier part of this conversation. Please start a new one."),
    "rate_limited": _("The model accepts no more requests at the moment."),
    "rate_limited_until": _(
        "The model accepts no more requests at the moment. Please try again in {seconds} s."
    ),
    "server_error": _("The model has an internal fault at the moment. Please try again."),
    "overloaded": _("The model is overloaded at the moment. Please try again in a little while."),
    "timeout": _("The model did not answer in time. Please try again."),
    "stalled": _("The answer stopped coming in and was given up. Please try again."),
    "unreachable": _(
        "The model cannot be reached: no connection. Please try again, or ask an administrator."
    ),
    "connection_lost": _(
        "The connection to the model broke off in the middle of the answer. Please try again."
    ),
    "garbled": _("The model sent an answer that could not be read. Please try again."),
    "internal": _("Something went wrong inside this product; the log has the details. Please try again."),
    # Endings that are not a whole answer
    "cut": _("The answer was cut off because it reached its maximum length."),
    "refusal": _("The model declined to answer this message. Please put it differently."),
    "context_full": _(
        "The conversation has become too long for the model; the answer was cut off. "
        "From the next message on, the earlier ones are left out."
    ),
    "stop_sequence": _("The answer ended at a stop marker and may be incomplete."),
    "unknown_stop": _('The answer ended for an unknown reason ("{stop_reason}") and may be incomplete.'),
    "empty_answer": _("The model gave no answer. Please try again."),
    "step_limit": _("The assistant was stopped after {steps} steps without reaching an answer."),
    "stopped": _("You stopped this answer."),
    "disconnected": _("The connection was closed before this answer was finished."),
    "abandoned": _("This answer was interrupted because the program that wrote it ended."),
    "daily_limit": _("Your daily limit of {limit} tokens is used up. It goes on at {until}."),
}

# The same in two or three words, for the columns and filters of those who look after the product.
LABELS: dict[str, StrOrPromise] = {
    "key_refused": _("API key refused"),
    "forbidden": _("not permitted"),
    "payment": _("no credit left"),
    "model_unknown": _("unknown model"),
    "unreachable_api": _("wrong address"),
    "bad_request": _("invalid request"),
    "too_large": _("request too large"),
    "prompt_too_long": _("conversation too long"),
    "signature": _("history rejected"),
    "rate_limited": _("too many requests"),
    "rate_limited_until": _("too many requests, until later"),
    "server_error": _("fault of the provider"),
    "overloaded": _("overloaded"),
    "timeout": _("no answer in time"),
    "stalled": _("answer stalled"),
    "unreachable": _("out of reach"),
    "connection_lost": _("connection lost"),
    "garbled": _("unreadable answer"),
    "internal": _("internal fault"),
    "cut": _("maximum length"),
    "refusal": _("declined"),
    "context_full": _("conversation too long, cut off"),
    "stop_sequence": _("stop marker"),
    "unknown_stop": _("unknown stop reason"),
    "empty_answer": _("empty answer"),
    "step_limit": _("too many steps"),
    "stopped": _("stopped by the person"),
    "disconnected": _("page closed"),
    "abandoned": _("process ended"),
    "daily_limit": _("daily limit"),
}

RETRYABLE = frozenset(
    {
        "rate_limited",
        "rate_limited_until",
        "server_error",
        "overloaded",
        "timeout",
        "unreachable",
        "connection_lost",
        "stalled",
        "garbled",
    }
)

# To ask the same again would end in the same way.
NOT_TO_BE_RETRIED = frozenset({"refusal", "context_full"})

BUSY_CODES = frozenset({"rate_limited", "rate_limited_until", "overloaded"})
BUSY = _("The model is busy, trying again.")
UNREACHABLE = _("The model cannot be reached, trying again.")


class Fault(Exception):
    """A model call that failed: `code` names its sentence, `retry_after` is what the server asked for
    (seconds).

    `detail` is for the log: status and request id, never the key or a body.
    """

    def __init__(
        self, code: str, *, retry_after: float | None = None, detail: str = "", **params: str | int
    ) -> None:
        super().__init__(code)
        self.code = code
        self.params = params
        self.retry_after = retry_after
        self.detail = detail

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE

    @property
    def retrying_sentence(self) -> StrOrPromise:
        return BUSY if self.code in BUSY_CODES else UNREACHABLE


def sentence(code: str, params: Mapping[str, Any] | None = None) -> StrOrPromise:
    """The sentence for the person, translated when it is rendered. An unknown code gets the general one."""
    text = SENTENCES.get(code, SENTENCES["internal"])
    if not params:
        return text
    shown = {name: lazy_grouped(one) if isinstance(one, int) else one for name, one in params.items()}
    if "until" in shown:
        shown["until"] = clock(datetime.fromisoformat(shown["until"]))
    return format_lazy(text, **shown)
