"""The audit trail, to be read by superusers and whoever is given the permission."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from helpdesk.models import AuditEvent


@admin.register(AuditEvent)
class AuditEventAdmin(admin.ModelAdmin):
    list_display = ("at", "kind", "person", "by", "address", "detail", "request_id")
    list_filter = ("kind",)
    list_select_related = ("by",)
    search_fields = ("person", "address", "request_id")
    date_hierarchy = "at"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
