"""The list of tickets with the search by meaning and the view of possible duplicates."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tickets.admin import QUICK_VIEWS, QuickViews, SearchSwitch, TicketAdmin
from tickets.models import Ticket
from tickets.querysets import TicketQuerySet

from .judging import open_candidates
from .results import Outcome, SearchOutcome
from .search import find_similar


class MeaningSwitch(SearchSwitch):
    title = _("by meaning, in any language")
    parameter_name = "meaning"


def possible_duplicates(tickets: TicketQuerySet, user: User) -> TicketQuerySet:
    """Tickets that may be duplicates of an older one, which nobody has judged yet."""
    return tickets.filter(pk__in=open_candidates().values("ticket"))


class MeaningAdmin(admin.ModelAdmin):
    """For the admin of tickets."""

    list_filter = (MeaningSwitch, *TicketAdmin.list_filter)
    quick_views: QuickViews = {
        **QUICK_VIEWS,
        "duplicates": (_("With possible duplicates"), possible_duplicates),
    }

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
