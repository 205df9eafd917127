"""Turns as they were: for reading, never for editing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from assistant.models import ToolCall, Turn
from assistant.statistics_admin import StatisticsAdmin
from tickets.readonly_admin import ReadOnly, RecordAdmin


class ValuesFilter(admin.AllValuesFieldListFilter):
    """Every value there is; the empty one has a name as well."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or "–"}


class ToolCallInline(ReadOnly, admin.TabularInline):
    model = ToolCall
    fields = ("name", "input", "is_error", "error", "outcome", "ticket", "duration_ms", "result")
    readonly_fields = fields
    raw_id_fields = ("ticket",)
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolCall]:
        return super().get_queryset(request).select_related("ticket")


@admin.register(Turn)
class TurnAdmin(RecordAdmin, StatisticsAdmin):
    """Filterable by how turns ended. Conversations belong to their owners: only the records show."""

    list_display = (
        "id", "created_at", "person", "status", "why", "stop_reason", "first_token_ms", "total_ms",
        "tokens_in", "tokens_out", "sources_found", "sources_used", "links_removed", "helpful",
    )  # fmt: skip
    list_filter = (
        "status", ("error", ValuesFilter), ("stop_reason", ValuesFilter), ("model", ValuesFilter), "helpful",
        "created_at",
    )  # fmt: skip
    search_fields = ("question", "answer", "conversation__user__username")
    list_select_related = ("conversation__user",)
    inlines = (ToolCallInline,)

    @admin.display(description=_("error"), ordering="error")
    def why(self, turn: Turn) -> str:
        return str(turn.error_sentence)

    @admin.display(description=_("person"), ordering="conversation__user__username")
    def person(self, turn: Turn) -> str:
        return turn.conversation.user.get_username()
