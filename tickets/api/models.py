"""What the API keeps for itself: tokens, answers that must not be given twice, and how fast somebody asks."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework.utils.encoders import JSONEncoder

PREFIX = "hd_"  # lets secret scanners and people recognise a token that has leaked
LIFETIME = timedelta(days=90)
USE_IS_NOTED_EVERY = timedelta(minutes=1)
KEYS_ARE_KEPT = timedelta(hours=24)
KEYS_CLEARED_AT_ONCE = 1_000
MINUTE = 60


def in_ninety_days() -> datetime:
    return timezone.now() + LIFETIME


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def with_secret(self, secret: str) -> ApiToken | None:
        return self.select_related("user").filter(digest=digest_of(secret)).first()


class ApiToken(models.Model):
    """A key with which a program acts as `user`. Only a digest is kept: the secret is shown once, at issue.

    SHA-256 without salt or stretching is right here: the secret has 256 random bits, so that there is nothing
    to guess, and the digest can be looked up by an index.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens", verbose_name=_("person")
    )
    name = models.CharField(_("name"), max_length=80, help_text=_("What it is for, such as: monitoring."))
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("made by"),
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), default=in_ninety_days)
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def issue(
        cls, *, user: User, name: str, by: User, expires_at: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """A new token and its secret, which cannot be read again afterwards."""
        token = cls(user=user, name=name, expires_at=expires_at or in_ninety_days())
        secret = token.draw_secret(by)
        token.save(force_insert=True)
        return token, secret

    def draw_secret(self, by: User) -> str:
        """Gives an unsaved token its secret."""
        secret = PREFIX + secrets.token_urlsafe(32)
        self.digest, self.created_by = digest_of(secret), by
        return secret

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now() and self.user.is_active

    def revoke(self) -> None:
        if self.revoked_at is None:
            self.revoked_at = timezone.now()
            self.save(update_fields=["revoked_at"])

    def note_use(self) -> None:
        """Writes at most once a minute, so that reading through the API stays reading."""
        now = timezone.now()
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY)
        if self.last_used_at is None or self.last_used_at < now - USE_IS_NOTED_EVERY:
            ApiToken.objects.filter(stale, pk=self.pk).update(last_used_at=now)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class IdempotencyKey(models.Model):
    """The answer to a request that carried an `Idempotency-Key`, for whoever sends it again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    headers: Any = models.JSONField(default=dict)
    body: Any = models.JSONField(null=True, encoder=JSONEncoder)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="tickets_api_idempotency_key")]

    def __str__(self) -> str:
        return self.key

    @classmethod
    def forget_old(cls) -> None:
        """A bounded number at a time; what another request is just clearing is left to it."""
        old = cls.objects.filter(created_at__lt=timezone.now() - KEYS_ARE_KEPT)
        some = old.order_by("created_at").select_for_update(skip_locked=True)[:KEYS_CLEARED_AT_ONCE]
        cls.objects.filter(pk__in=some.values("pk")).delete()


class RequestRate(models.Model):
    """How many requests a token or a person made in the running minute and in the one before.

    A table instead of a cache, so that the limit holds over all web processes; unlogged (set in the
    migration), so that counting costs no flush to the disk. After a crash of the database it is empty.
    """

    key = models.CharField(max_length=40, primary_key=True)
    minute = models.BigIntegerField()
    count = models.PositiveIntegerField()
    previous = models.PositiveIntegerField()

    class Meta:
        verbose_name = _("request rate")
        verbose_name_plural = _("request rates")

    def __str__(self) -> str:
        return self.key

    # The window slides: the minute before counts by the share of it that lies within the last 60 seconds.
    # Refused requests are not counted, so that who hammers on is served again as soon as others would be.
    _ADMIT = """
        INSERT INTO tickets_api_requestrate AS r (key, minute, count, previous)
        VALUES (%(key)s, %(minute)s, 1, 0)
        ON CONFLICT (key) DO UPDATE SET
            minute = GREATEST(r.minute, EXCLUDED.minute),
            count = CASE WHEN r.minute >= EXCLUDED.minute THEN r.count + 1 ELSE 1 END,
            previous = CASE WHEN r.minute >= EXCLUDED.minute THEN r.previous
                            WHEN r.minute = EXCLUDED.minute - 1 THEN r.count ELSE 0 END
        WHERE CASE WHEN r.minute >= EXCLUDED.minute THEN r.count + r.previous * %(share)s
                   WHEN r.minute = EXCLUDED.minute - 1 THEN r.count * %(share)s ELSE 0 END < %(limit)s
        RETURNING key
    """

    @classmethod
    def admit(cls, key: str, limit: int) -> bool:
        """Count one request of `key` unless it already made `limit` within a minute."""
        minute, second = divmod(time.time(), MINUTE)
        values: dict[str, str | float] = {
            "key": key,
            "minute": int(minute),
            "share": 1 - second / MINUTE,
            "limit": limit,
        }
        with connection.cursor() as cursor:
            cursor.execute(cls._ADMIT, values)
            return cursor.fetchone() is not None
