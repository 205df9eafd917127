"""Turns as they were: for reading, never for editing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from assistant import faults, wording
from assistant.models import ToolCall, Turn
from assistant.statistics_admin import StatisticsAdmin
from retrieval.sentences import OUTCOMES
from tickets.readonly_admin import ReadOnly, RecordAdmin

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class ValuesFilter(admin.AllValuesFieldListFilter):
    """Every value there is, by its label where it has one; the empty one has a name as well."""

    labels: ClassVar[dict[str, StrOrPromise]] = {}

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            value = str(choice["display"] or "")
            yield {**choice, "display": self.labels.get(value, value) or "–"}


class ErrorFilter(ValuesFilter):
    labels = faults.LABELS


class StopReasonFilter(ValuesFilter):
    labels = wording.STOP_REASONS


class ToolCallInline(ReadOnly, admin.TabularInline):
    model = ToolCall
    fields = ("step", "input", "is_error", "refusal", "found", "ticket", "duration_ms", "result")
    readonly_fields = fields
    raw_id_fields = ("ticket",)
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolCall]:
        return super().get_queryset(request).select_related("ticket")

    @admin.display(description=_("tool"))
    def step(self, call: ToolCall) -> str:
        return str(wording.label(call.name))

    @admin.display(description=_("reason"), empty_value="–")
    def refusal(self, call: ToolCall) -> str | None:
        return str(wording.summary(call)) if call.is_error else None

    @admin.display(description=_("search outcome"), empty_value="–")
    def found(self, call: ToolCall) -> str | None:
        return str(OUTCOMES.get(call.outcome, call.outcome)) or None


@admin.register(Turn)
class TurnAdmin(RecordAdmin, StatisticsAdmin):
    """Filterable by how turns ended. Conversations belong to their owners: only the records show."""

    list_display = (
        "id", "created_at", "person", "status", "why", "stopped", "first_token_ms", "total_ms",
        "tokens_in", "tokens_out", "sources_found", "sources_used", "links_removed", "helpful",
    )  # fmt: skip
    list_filter = (
        "status", ("error", ErrorFilter), ("stop_reason", StopReasonFilter), ("model", ValuesFilter),
        "helpful", "created_at",
    )  # fmt: skip
    search_fields = ("question", "answer", "conversation__user__username")
    list_select_related = ("conversation__user",)
    exclude = ("error", "stop_reason")
    readonly_fields = ("why", "stopped")
    inlines = (ToolCallInline,)

    @admin.display(description=_("error"), ordering="error")
    def why(self, turn: Turn) -> str:
        return str(turn.error_sentence)

    @admin.display(description=_("stop reason"), ordering="stop_reason", empty_value="–")
    def stopped(self, turn: Turn) -> str | None:
        return str(wording.STOP_REASONS.get(turn.stop_reason, turn.stop_reason)) or None

    @admin.display(description=_("person"), ordering="conversation__user__username")
    def person(self, turn: Turn) -> str:
        return turn.conversation.user.get_username()
