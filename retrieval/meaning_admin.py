"""The list of tickets with the search by meaning and the view of possible duplicates."""

from __future__ import annotations

from typing import Any, Literal

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR, ChangeList
from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tickets.admin import QUICK_VIEWS, QuickViews, SearchSwitch, TicketAdmin, TicketChangeList
from tickets.models import Ticket
from tickets.querysets import TicketQuerySet

from .judging import open_candidates
from .results import Outcome, SearchOutcome
from .search import find_similar
from .state import searches_by_meaning


class MeaningSwitch(SearchSwitch):
    title = _("by meaning, in any language")
    parameter_name = "meaning"


def possible_duplicates(tickets: TicketQuerySet, user: User) -> TicketQuerySet:
    """Tickets that may be duplicates of an older one, which nobody has judged yet."""
    return tickets.filter(pk__in=open_candidates().values("ticket"))


class MeaningChangeList(TicketChangeList):
    """Where words find nothing it offers the meaning; sorted by that, it is sorted by no column."""

    nearest_first = False

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        queryset = super().get_queryset(request, exclude_parameters)
        found: SearchOutcome | None = getattr(request, "_found_by_meaning", None)
        if found is not None and found.outcome != Outcome.UNAVAILABLE:
            self.nearest_first = ORDER_VAR not in self.params
        return queryset

    def get_ordering_field_columns(self) -> dict[int, Literal["desc", "asc"]]:
        return {} if self.nearest_first else super().get_ordering_field_columns()

    def search_by_meaning(self) -> str:
        """Where the same words are searched by meaning; "" if that is no way out."""
        is_in_vain = self.query.strip() and not self.result_count
        if not is_in_vain or MeaningSwitch.parameter_name in self.params or not searches_by_meaning():
            return ""
        return self.get_query_string({MeaningSwitch.parameter_name: "1"}, [PAGE_VAR])


class MeaningAdmin(admin.ModelAdmin):
    """For the admin of tickets."""

    list_filter = (MeaningSwitch, *TicketAdmin.list_filter)
    quick_views: QuickViews = {
        **QUICK_VIEWS,
        "duplicates": (_("Maybe duplicates"), possible_duplicates),
    }

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return MeaningChangeList

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        if not (search_term.strip() and request.GET.get(MeaningSwitch.parameter_name)):
            return super().get_search_results(request, queryset, search_term)
        outcome = self._found(request, search_term)
        if outcome.outcome == Outcome.UNAVAILABLE:
            return super().get_search_results(request, queryset, search_term)
        return self._in_order(request, queryset, [hit.ticket.pk for hit in outcome.hits]), False

    def _found(self, request: Any, text: str) -> SearchOutcome:
        """Once a request, however often the list asks; says what the list alone would not show."""
        known: SearchOutcome | None = getattr(request, "_found_by_meaning", None)
        if known is None:
            known = find_similar(text, user=request.user, limit=settings.SEARCH_MAX_LIMIT)
            request._found_by_meaning = known
            if sentence := _caveat(known):
                messages.warning(request, sentence)
        return known

    def _in_order(self, request: HttpRequest, queryset: QuerySet[Ticket], ids: list[int]) -> QuerySet[Ticket]:
        """The nearest first, unless the reader has sorted by a column."""
        found = queryset.filter(pk__in=ids)
        if request.GET.get("o") or not ids:
            return found
        ranks = [When(pk=pk, then=Value(rank)) for rank, pk in enumerate(ids)]
        return found.order_by(Case(*ranks, output_field=IntegerField()))


def _caveat(outcome: SearchOutcome) -> str:
    if outcome.outcome == Outcome.UNAVAILABLE:
        return gettext("Searched by words only, not by meaning: %(reason)s") % {"reason": outcome.reason}
    if not outcome.coverage.is_complete:
        seen = {"indexed": outcome.coverage.indexed, "total": outcome.coverage.total}
        return gettext("Only %(indexed)s of %(total)s tickets could be compared by meaning so far.") % seen
    return ""
