"""The audit trail, to be read by superusers and whoever is given the permission."""

from __future__ import annotations

from django.contrib import admin

from helpdesk.models import AuditEvent
from tickets.readonly_admin import ReadOnly


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("at", "kind", "person", "by", "address", "detail", "request_id")
    list_filter = ("kind",)
    list_select_related = ("by",)
    search_fields = ("person", "address", "request_id")
    date_hierarchy = "at"
    show_full_result_count = False
