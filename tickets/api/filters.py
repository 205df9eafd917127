"""The questions that a list of tickets answers."""

from typing import Any

import django_filters as filters
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field

from tickets.models import Ticket
from tickets.querysets import UNRESOLVED, TicketQuerySet


@extend_schema_field(OpenApiTypes.BOOL)
class FlagFilter(filters.TypedChoiceFilter):
    """true or false. The filter of the library takes anything else for "both" without a word."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[("true", "true"), ("false", "false")], coerce="true".__eq__, **options)


class TicketFilter(filters.FilterSet):
    status = filters.MultipleChoiceFilter(choices=Ticket.Status.choices, help_text="Repeat it for several.")
    priority = filters.MultipleChoiceFilter(
        choices=Ticket.Priority.choices, help_text="Repeat it for several."
    )
    unresolved = FlagFilter(method="narrow_unresolved", help_text="New, open or pending.")
    category = filters.CharFilter(field_name="category__name", lookup_expr="iexact")
    reporter = filters.CharFilter(field_name="reporter__username", help_text="User name.")
    assignee = filters.CharFilter(field_name="assignee__username", help_text="User name.")
    unassigned = FlagFilter(field_name="assignee", lookup_expr="isnull")
    source = filters.MultipleChoiceFilter(choices=Ticket.Source.choices)
    duplicate_check = filters.ChoiceFilter(choices=Ticket.DuplicateCheck.choices)
    duplicate_of = filters.NumberFilter(
        field_name="duplicate_of", min_value=1, max_value=2**63 - 1, help_text="Merged into this ticket."
    )
    created_after = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    created_before = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")
    updated_after = filters.IsoDateTimeFilter(field_name="updated_at", lookup_expr="gte")
    updated_before = filters.IsoDateTimeFilter(field_name="updated_at", lookup_expr="lt")
    q = filters.CharFilter(
        method="narrow_words",
        label=_("words"),
        max_length=1_000,
        help_text='Words in title or description: several, "a phrase", -without.',
    )

    class Meta:
        model = Ticket
        fields: tuple[str, ...] = ()

    def narrow_unresolved(self, tickets: TicketQuerySet, name: str, value: bool) -> Any:
        return tickets.unresolved() if value else tickets.exclude(status__in=UNRESOLVED)

    def narrow_words(self, tickets: TicketQuerySet, name: str, value: str) -> Any:
        return tickets.matching_words(value)
