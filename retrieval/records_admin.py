"""What machines wrote, to look at and not to change; verdicts of people may be taken back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tickets.readonly_admin import ReadOnly

from .health_admin import HealthAdmin
from .models import IndexState, SearchLog, SearchProfile, TicketEmbedding, Verdict, WorkerState


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):
    """Lists and shows; counts nothing in full, because these tables are long."""

    show_full_result_count = False


@admin.register(TicketEmbedding)
class TicketEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("ticket", "model", "shortened", "attempts", "error", "retry_at", "updated_at")
    list_filter = (("failed_hash", admin.EmptyFieldListFilter),)
    list_select_related = ("ticket",)
    exclude = ("embedding", "content_hash", "failed_hash")
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TicketEmbedding]:
        return super().get_queryset(request).defer("embedding", "ticket__description", "ticket__resolution")

    @admin.display(description=_("shortened"), boolean=True)
    def shortened(self, row: TicketEmbedding) -> bool:
        return row.is_shortened


@admin.register(IndexState)
class IndexStateAdmin(HealthAdmin, ReadOnlyAdmin):
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


@admin.register(WorkerState)
class WorkerStateAdmin(ReadOnlyAdmin):
    list_display = ("name", "model", "activity", "reason", "paused_until", "embedded", "heartbeat_at")
    ordering = ("-heartbeat_at",)


@admin.register(SearchProfile)
class SearchProfileAdmin(ReadOnlyAdmin):
    list_display = ("model", "identifier_weight", "word_weight", "floor", "likely", "calibrated_at")


@admin.register(SearchLog)
class SearchLogAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "user", "text_beginning", "outcome", "reason_code", "embed_ms", "search_ms")
    list_filter = ("outcome",)
    list_select_related = ("user",)
    ordering = ("-pk",)

    @admin.display(description=_("text"))
    def text_beginning(self, row: SearchLog) -> str:
        return row.text[:80]


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "ticket", "candidate", "judgement", "by")
    list_filter = ("judgement",)
    list_select_related = ("ticket", "candidate", "by")
    raw_id_fields = ("search", "ticket", "candidate", "by")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
