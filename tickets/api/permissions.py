"""Asks `tickets.permissions` for each method; what a person may see is decided by `visible_to()`."""

from collections.abc import Callable
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tickets.permissions import Person, may_view

Rights = dict[str, Callable[[Person], bool]]


class TicketRights(BasePermission):
    """A view says by `rights` who may write; reading asks for the right to view."""

    def has_permission(self, request: Request, view: Any) -> bool:
        rights: Rights = getattr(view, "rights", {})
        return rights.get(request.method or "", may_view)(request.user)
