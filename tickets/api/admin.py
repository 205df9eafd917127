"""Where tokens are made, seen once, and revoked. Administrators see all of them, others their own."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from .models import ApiToken

LONGEST_LIFETIME = timedelta(days=366)


class ApiTokenForm(forms.ModelForm):
    def clean_expires_at(self) -> Any:
        expires_at, now = self.cleaned_data["expires_at"], timezone.now()
        if not now < expires_at <= now + LONGEST_LIFETIME:
            raise ValidationError(gettext("Choose a time within a year from now."))
        return expires_at


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    form = ApiTokenForm
    fields = ("name", "user", "expires_at")
    autocomplete_fields = ("user",)
    list_display = ("name", "user", "state", "created_by", "created_at", "expires_at", "last_used_at")
    list_select_related = ("user", "created_by")
    search_fields = ("name", "user__username")
    show_full_result_count = False
    actions = ("revoke",)

    # -- whose tokens --------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        tokens = super().get_queryset(request)
        return tokens if _sees_all(request) else tokens.filter(user=request.user)

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """Only administrators choose for whom: a token for somebody else would be their rights to take."""
        return self.fields if _sees_all(request) else ("name", "expires_at")

    # -- making one ----------------------------------------------------------------------------------------

    def save_model(self, request: Any, obj: ApiToken, form: Any, change: bool) -> None:
        if not _sees_all(request):
            obj.user = request.user
        obj.secret = obj.draw_secret(request.user)  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: Any = None
    ) -> HttpResponse:
        """Shows the secret in this answer and nowhere else: a message would wait in a cookie."""
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Token made"),
            "opts": self.opts,
            "token": obj,
            "secret": obj.secret,  # type: ignore[attr-defined]
        }
        response = TemplateResponse(request, "admin/tickets_api/apitoken/made.html", context)
        response["Cache-Control"] = "no-store"
        return response

    # -- revoking ------------------------------------------------------------------------------------------

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        revoked = list(tokens.filter(revoked_at=None))
        for token in revoked:
            token.revoke()
            self.log_change(request, token, [{"changed": {"fields": ["revoked_at"]}}])
        text = ngettext("%(count)d token revoked.", "%(count)d tokens revoked.", len(revoked))
        messages.success(request, text % {"count": len(revoked)})

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return super().has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Kept after revocation, as the trace of who could do what until when."""
        return False

    @admin.display(description=_("state"))
    def state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return gettext("revoked")
        return gettext("valid") if token.is_usable else gettext("expired")


def _sees_all(request: Any) -> bool:
    return bool(request.user.is_superuser)
