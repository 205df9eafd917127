"""The request under way, for what happens far from a view: the audit of a change of rights."""

from contextvars import ContextVar

from django.http import HttpRequest

current_request: ContextVar[HttpRequest | None] = ContextVar("current_request", default=None)
