"""Pages by position instead of by number: no counting, no page gets slower, nothing is shown twice.

The framework's own cursor looks at the first sort field only and gives up behind 1,000 equal values, which an
import by date has easily; this one compares the id as well.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place between two rows: behind the row with `value` and `pk`, or before it when `back`."""

    ordering: str
    value: Any
    pk: int
    back: bool = False

    def encode(self) -> str:
        value = self.value.isoformat() if isinstance(self.value, datetime) else self.value
        text = json.dumps([self.ordering, value, self.pk, int(self.back)], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, token: str, ordering: str, model: type[models.Model]) -> Cursor:
        """Raises `ValueError` for anything that `encode()` did not write for this ordering."""
        field: Any = model._meta.get_field(ordering.lstrip("-"))
        try:
            text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            written_for, value, pk, back = json.loads(text)
            value = field.to_python(value)
        except (ValueError, TypeError, RecursionError, OverflowError, ValidationError) as error:
            raise ValueError(token) from error
        fits = written_for == ordering and _is_value(value) and type(pk) is int and 0 <= pk <= LARGEST_ID
        if not fits or back not in (0, 1):
            raise ValueError(token)
        return cls(ordering, value, pk, bool(back))


def _is_value(value: Any) -> bool:
    """Whether a column that is never null could hold it: a time with its zone, a text, a number in range."""
    if isinstance(value, datetime):
        return timezone.is_aware(value)
    return isinstance(value, str) or (isinstance(value, int) and 0 <= value <= LARGEST_ID)


class KeysetPagination(BasePagination):
    page_size = 50
    max_page_size = 200

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request = request
        self.ordering = self._ordering(request, view)
        self.cursor = self._cursor(request, queryset.model)
        self.size = self._size(request)
        rows = list(self._from_cursor(queryset)[: self.size + 1])
        self.has_more, rows = len(rows) > self.size, rows[: self.size]
        if self.cursor and self.cursor.back:
            rows.reverse()
        self.rows = rows
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self.next_link(), "previous": self.previous_link(), "results": data})

    def next_link(self) -> str | None:
        going_back = self.cursor is not None and self.cursor.back
        if not (going_back or self.has_more) or not self.rows:
            return None
        return self._link(self.rows[-1], back=False)

    def previous_link(self) -> str | None:
        if self.cursor is None or not self.rows or (self.cursor.back and not self.has_more):
            return None
        return self._link(self.rows[0], back=True)

    # -- where the page begins -----------------------------------------------------------------------------

    def _from_cursor(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        field, descending = self.ordering.lstrip("-"), self.ordering.startswith("-")
        if self.cursor is None:
            return queryset.order_by(*_order(field, descending))
        descending ^= self.cursor.back
        return queryset.filter(_beyond(field, descending, self.cursor)).order_by(*_order(field, descending))

    def _link(self, row: Any, *, back: bool) -> str:
        value = getattr(row, self.ordering.lstrip("-"))
        parameters = [
            (name, value)
            for name, values in self.request.query_params.lists()
            for value in values
            if name != "cursor"
        ]
        parameters.append(("cursor", Cursor(self.ordering, value, row.pk, back).encode()))
        return f"{self.request.build_absolute_uri(self.request.path)}?{urlencode(parameters)}"

    # -- what was asked for --------------------------------------------------------------------------------

    @staticmethod
    def _ordering(request: Request, view: Any) -> str:
        allowed = view.orderings
        ordering = request.query_params.get("ordering", allowed[0])
        if ordering not in allowed:
            message = _("Order by one of: %(allowed)s.") % {"allowed": ", ".join(allowed)}
            raise exceptions.ValidationError({"ordering": message})
        return ordering

    def _cursor(self, request: Request, model: type[models.Model]) -> Cursor | None:
        token = request.query_params.get("cursor")
        if not token:
            return None
        try:
            return Cursor.decode(token, self.ordering, model)
        except ValueError as error:
            message = _("This is no place in this list. Follow the links of a page, or start without it.")
            raise exceptions.ValidationError({"cursor": message}) from error

    def _size(self, request: Request) -> int:
        text = request.query_params.get("page_size", str(self.page_size))
        size = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if not 1 <= size <= self.max_page_size:
            message = _("Give a number from 1 to %(maximum)d.") % {"maximum": self.max_page_size}
            raise exceptions.ValidationError({"page_size": message})
        return size

    # -- for the schema ------------------------------------------------------------------------------------

    def get_paginated_response_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {
                "next": {**link, "description": "The page behind this one."},
                "previous": {**link, "description": "The page before this one."},
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {
            "type": "integer",
            "minimum": 1,
            "maximum": self.max_page_size,
            "default": self.page_size,
        }
        orderings = {"type": "string", "enum": list(view.orderings), "default": view.orderings[0]}
        return [
            _parameter("cursor", {"type": "string"}, "From the link of another page."),
            _parameter("page_size", size, "How many at once."),
            _parameter("ordering", orderings, "A minus sign: largest or newest first."),
        ]

    parameters = ("cursor", "page_size", "ordering")


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _order(field: str, descending: bool) -> list[str]:
    sign = "-" if descending else ""
    return [sign + field] if field in ("id", "pk") else [sign + field, sign + "pk"]


def _beyond(field: str, descending: bool, cursor: Cursor) -> Q:
    """Rows behind the cursor. The first, coarser bound is the one that an index can begin at."""
    side = "lt" if descending else "gt"
    equal_value = Q(**{f"pk__{side}": cursor.pk})
    return Q(**{f"{field}__{side}e": cursor.value}) & (Q(**{f"{field}__{side}": cursor.value}) | equal_value)
