"""What machines wrote, to look at and not to change; verdicts of people may be taken back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tickets.readonly_admin import RecordAdmin

from .health_admin import HealthAdmin
from .models import IndexState, SearchLog, SearchProfile, TicketEmbedding, Verdict, WorkerState
from .sentences import OUTCOMES, REASONS
from .templatetags.ticket_hits import duration


class FailedFilter(admin.SimpleListFilter):
    """Tickets whose text could not be embedded; there is an index of these."""

    title = _("failed")
    parameter_name = "failed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", _("failed"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.exclude(failed_hash=None) if self.value() else queryset


def _duration(milliseconds: float | None) -> str:
    return duration(None if milliseconds is None else round(milliseconds))


def _reason(row: WorkerState | SearchLog) -> str | None:
    return str(REASONS.get(row.reason_code, row.reason_code)) or None


class OutcomeFilter(admin.SimpleListFilter):
    title = _("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(str(outcome), label) for outcome, label in OUTCOMES.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(outcome=self.value()) if self.value() else queryset


@admin.register(TicketEmbedding)
class TicketEmbeddingAdmin(RecordAdmin):
    list_display = ("ticket", "model", "shortened", "attempts", "error", "retry_at", "updated_at")
    list_filter = (FailedFilter,)
    list_select_related = ("ticket",)
    exclude = ("embedding", "content_hash", "failed_hash")

    def get_queryset(self, request: HttpRequest) -> QuerySet[TicketEmbedding]:
        return super().get_queryset(request).defer("embedding", "ticket__description", "ticket__resolution")

    @admin.display(description=_("shortened"), boolean=True)
    def shortened(self, row: TicketEmbedding) -> bool:
        return row.is_shortened


@admin.register(IndexState)
class IndexStateAdmin(HealthAdmin, RecordAdmin):
    list_display = (
        "model",
        "indexed",
        "total",
        "failed",
        "completed_at",
        "swept_at",
        "second_stage",
        "recall",
    )
    exclude = ("last_id",)


@admin.register(WorkerState)
class WorkerStateAdmin(RecordAdmin):
    list_display = ("name", "model", "activity", "why", "paused_until", "embedded", "heartbeat_at")
    ordering = ("-heartbeat_at",)
    exclude = ("reason_code",)

    @admin.display(description=_("reason"), empty_value="–")
    def why(self, row: WorkerState) -> str | None:
        return _reason(row)


@admin.register(SearchProfile)
class SearchProfileAdmin(RecordAdmin):
    list_display = ("model", "identifier_weight", "word_weight", "floor", "likely", "calibrated_at")


@admin.register(SearchLog)
class SearchLogAdmin(RecordAdmin):
    list_display = ("created_at", "user", "text_beginning", "result", "why", "embedding", "search")
    list_filter = (OutcomeFilter,)
    exclude = ("outcome", "reason_code")
    readonly_fields = ("result", "why")
    list_select_related = ("user",)

    @admin.display(description=_("text"))
    def text_beginning(self, row: SearchLog) -> str:
        return row.text[:80]

    @admin.display(description=_("embedding"), ordering="embed_ms")
    def embedding(self, row: SearchLog) -> str:
        return _duration(row.embed_ms)

    @admin.display(description=_("comparing"), ordering="search_ms")
    def search(self, row: SearchLog) -> str:
        return _duration(row.search_ms)

    @admin.display(description=_("outcome"))
    def result(self, row: SearchLog) -> str:
        return str(OUTCOMES.get(row.outcome, row.outcome))

    @admin.display(description=_("reason"), empty_value="–")
    def why(self, row: SearchLog) -> str | None:
        return _reason(row)


@admin.register(Verdict)
class VerdictAdmin(RecordAdmin):
    list_display = ("created_at", "ticket", "candidate", "judgement", "by")
    list_filter = ("judgement",)
    list_select_related = ("ticket", "candidate", "by")
    raw_id_fields = ("search", "ticket", "candidate", "by")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
