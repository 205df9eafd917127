"""Tickets under /api/v1/. The views translate between HTTP and the models; they decide nothing."""

from __future__ import annotations

import re
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import generics, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from tickets.models import Category, StaleTicket, Ticket, TicketEvent, Via
from tickets.permissions import may_add, may_change, may_comment, may_view
from tickets.services import create_ticket

from . import schema
from .filters import TicketFilter
from .idempotency import idempotent
from .pagination import KeysetPagination
from .permissions import Rights
from .serializers import (
    CategorySerializer,
    CommentSerializer,
    EventSerializer,
    NewCommentSerializer,
    NewTicketSerializer,
    TicketChangeSerializer,
    TicketSerializer,
    TicketSummarySerializer,
    etag_of,
)

SUMMARY_FIELDS = (
    *(
        field
        for field in TicketSummarySerializer.Meta.fields
        if field not in ("reporter", "assignee", "category")
    ),
    "reporter__username",
    "assignee__username",
    "category__name",
)


class StrictParameters(APIView):
    """Refuses query parameters that mean nothing here: they must not look as if they had filtered."""

    parameters: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ("status", "priority", "source")
    http_method_names = ["get", "head", "post", "patch"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in ("GET", "HEAD"):
            errors = {name: self._wrong(name, values) for name, values in request.query_params.lists()}
            if any(errors.values()):
                raise ValidationError({name: error for name, error in errors.items() if error})

    def _wrong(self, name: str, values: list[str]) -> str:
        if name not in self.parameters:
            return _("There is no such parameter here.")
        if not all(values):
            return _("There is no value. Leave the parameter out instead.")
        return "" if name in self.repeatable or len(values) == 1 else _("Only one value is possible here.")


class ApiView(StrictParameters, generics.GenericAPIView):
    rights: Rights = {"POST": may_add, "PATCH": may_change}
    orderings: tuple[str, ...] = ()

    @property
    def person(self) -> User:
        return cast(User, self.request.user)

    def ticket(self) -> Ticket:
        tickets = Ticket.objects.visible_to(self.person).select_related("reporter", "assignee", "category")
        return get_object_or_404(tickets, pk=self.kwargs["pk"])

    def valid(self, serializer: type[Serializer]) -> dict[str, Any]:
        form = serializer(data=self.request.data)
        form.is_valid(raise_exception=True)
        return form.validated_data

    def page_of(self, rows: QuerySet[Any], serializer: type[Serializer]) -> Response:
        return self.get_paginated_response(serializer(self.paginate_queryset(rows), many=True).data)


class TicketListView(ApiView):
    pagination_class = KeysetPagination
    queryset = Ticket.objects.none()  # for the schema; see tickets()
    filter_backends = [DjangoFilterBackend]
    filterset_class = TicketFilter
    orderings = ("-created_at", "created_at", "-updated_at", "updated_at", "-id", "id")
    parameters = (*KeysetPagination.parameters, *TicketFilter.base_filters)

    def tickets(self) -> QuerySet[Ticket]:
        tickets = Ticket.objects.visible_to(self.person)
        return tickets.select_related("reporter", "assignee", "category").only(*SUMMARY_FIELDS)

    @schema.ticket_list
    def get(self, request: Request) -> Response:
        return self.page_of(self.filter_queryset(self.tickets()), TicketSummarySerializer)

    @schema.ticket_create
    def post(self, request: Request) -> Response:
        return idempotent(request, self._create)

    def _create(self) -> Response:
        values = {"reporter": self.person, **self.valid(NewTicketSerializer)}
        ticket = create_ticket(source=Ticket.Source.API, by=self.person, **values)
        return _answer(ticket, status.HTTP_201_CREATED, Location=self._address(ticket))

    def _address(self, ticket: Ticket) -> str:
        return self.request.build_absolute_uri(reverse("api-ticket", args=[ticket.pk]))


class TicketView(ApiView):
    @schema.ticket_read
    def get(self, request: Request, pk: int) -> Response:
        return _answer(self.ticket())

    @schema.ticket_change
    def patch(self, request: Request, pk: int) -> Response:
        ticket = self.ticket()
        changes = self.valid(TicketChangeSerializer)
        ticket.change(by=self.person, via=Via.API, expected_version=self._expected_version(ticket), **changes)
        return _answer(ticket)

    def _expected_version(self, ticket: Ticket) -> int | None:
        """The version that `If-Match` names; None if the client does not insist on one."""
        condition = self.request.headers.get("If-Match", "*").strip()
        if condition == "*":
            return None
        if etag_of(ticket) in (tag.strip() for tag in condition.split(",")):
            return ticket.version
        raise StaleTicket(ticket, _version_named(condition))


class CommentListView(ApiView):
    pagination_class = KeysetPagination
    rights = {"POST": may_comment}
    orderings = ("created_at", "-created_at")
    parameters = KeysetPagination.parameters

    @schema.comment_list
    def get(self, request: Request, pk: int) -> Response:
        return self.page_of(self.ticket().thread(), CommentSerializer)

    @schema.comment_create
    def post(self, request: Request, pk: int) -> Response:
        return idempotent(request, self._create)

    def _create(self) -> Response:
        comment = self.ticket().add_comment(by=self.person, via=Via.API, **self.valid(NewCommentSerializer))
        return Response(CommentSerializer(comment).data, status.HTTP_201_CREATED)


class EventListView(ApiView):
    pagination_class = KeysetPagination
    orderings = ("created_at", "-created_at")
    parameters = KeysetPagination.parameters

    @schema.event_list
    def get(self, request: Request, pk: int) -> Response:
        events: QuerySet[TicketEvent] = self.ticket().events.select_related("actor")
        return self.page_of(events, EventSerializer)


class CategoryListView(ApiView):
    pagination_class = KeysetPagination
    rights = {"GET": may_view}
    orderings = ("name", "-name")
    parameters = KeysetPagination.parameters

    @schema.category_list
    def get(self, request: Request) -> Response:
        return self.page_of(Category.objects.all(), CategorySerializer)


@schema.hidden
class NothingHere(APIView):
    """For addresses under /api/ that do not exist, so that the error has the same form there too."""

    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.http_method_not_allowed = self._not_found  # type: ignore[method-assign]
        return super().dispatch(request, *args, **kwargs)

    def _not_found(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound(_("There is nothing at this address. Mind the slash at the end."))


def _answer(ticket: Ticket, code: int = status.HTTP_200_OK, **headers: str) -> Response:
    return Response(TicketSerializer(ticket).data, code, headers={"ETag": etag_of(ticket), **headers})


def _version_named(condition: str) -> int:
    """The version of a plain `"3"`, from which on the changes are told; else 0, so all of them."""
    named = re.fullmatch(r'"(\d{1,9})"', condition, re.ASCII)
    return int(named[1]) if named else 0
