"""Who came in, and who was allowed what by whom."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Identity(models.Model):
    """Whom an account is at the login service: the subject is that person's for ever, a name is not."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identity")
    issuer = models.CharField(_("login service"), max_length=300)
    subject = models.CharField(_("subject"), max_length=255)

    class Meta:
        verbose_name = _("identity")
        verbose_name_plural = _("identities")
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="helpdesk_identity_subject")
        ]

    def __str__(self) -> str:
        return f"{self.subject} ({self.issuer})"


class AuditEvent(models.Model):
    """One login, or one change of what somebody may do. Written by `audit`, never changed.

    `person` is the name at that moment: it outlives the account.
    """

    class Kind(models.TextChoices):
        LOGIN = "login", _("logged in")
        LOGOUT = "logout", _("logged out")
        LOGIN_FAILED = "login_failed", _("failed to log in")
        LOCKED_OUT = "locked_out", _("locked out")
        PASSWORD = "password", _("password changed")
        ACCOUNT = "account", _("account changed")
        PERMISSIONS = "permissions", _("permissions changed")
        TOKEN = "token", _("API token")

    at = models.DateTimeField(_("at"), db_default=Now(), db_index=True)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    person = models.CharField(_("person or group"), max_length=200)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    address = models.CharField(_("address"), max_length=64, blank=True, default="")
    request_id = models.CharField(_("request"), max_length=32, blank=True, default="")
    detail = models.TextField(_("detail"), blank=True, default="")

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.person}: {self.get_kind_display()}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk:
            raise TypeError("audit entries are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("audit entries are never deleted one by one")
