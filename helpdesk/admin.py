"""Who came in, who was kept out, and who was allowed what; for reading only."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from helpdesk import audit
from helpdesk.models import AuditEvent, Identity
from tickets.readonly_admin import RecordAdmin


class WhenFilter(admin.DateFieldListFilter):
    """Under a name that reads well after "by"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("date")


@admin.register(AuditEvent)
class AuditEventAdmin(RecordAdmin):
    list_display = ("at", "kind", "who", "by", "address", "what", "request_id")
    list_filter = ("kind", ("at", WhenFilter))
    list_select_related = ("by",)
    search_fields = ("person", "address", "request_id")
    fields = ("at", "kind", "who", "by", "address", "what", "request_id")

    @admin.display(description=_("person or group"), ordering="person")
    def who(self, event: AuditEvent) -> str:
        return audit.person_in_words(event)

    @admin.display(description=_("detail"))
    def what(self, event: AuditEvent) -> str:
        return audit.detail_in_words(event)


class RevocableAdmin(RecordAdmin):
    """For records that still have an effect, which deleting them ends."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)


@admin.register(Identity)
class IdentityAdmin(RevocableAdmin):
    """Whom accounts are at the login service. Once one is deleted, the name decides at the next login."""

    list_display = ("user", "subject", "issuer")
    list_select_related = ("user",)
    search_fields = ("user__username", "subject")
    fields = list_display


@admin.register(AccessAttempt)
class FailedLoginAdmin(RevocableAdmin):
    """Failed logins that still count. Whoever deletes one lets that person try again at once."""

    list_display = ("attempt_time", "username", "ip_address", "failures_since_start", "is_locked_out")
    list_filter = (("attempt_time", WhenFilter),)
    search_fields = ("username", "ip_address")
    fields = (*list_display, "user_agent")

    @admin.display(description=_("locked out"), boolean=True)
    def is_locked_out(self, attempt: AccessAttempt) -> bool:
        return bool(attempt.failures_since_start >= settings.AXES_FAILURE_LIMIT)
