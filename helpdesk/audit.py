"""Writes an entry for each login and each change of rights, whichever page or command made it.

Passwords appear nowhere, and a failed login keeps the name that was tried only if such an account exists:
people type their password into the wrong field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from helpdesk.models import AuditEvent
from helpdesk.requests import current_request
from helpdesk.security import client_address
from tickets.api.models import ApiToken

log = structlog.get_logger("helpdesk.audit")

Kind = AuditEvent.Kind
RIGHTS = ("is_active", "is_staff", "is_superuser")
UNKNOWN = "(unknown account)"
SINGLE_SIGN_ON = "helpdesk.single_sign_on.Backend"


# The words of `detail`, which is kept as it was written whatever the language of its reader.
DETAILS = {
    "single sign-on": gettext_lazy("single sign-on"),
    "created": gettext_lazy("created"),
    "deleted": gettext_lazy("deleted"),
    "is_active: True": gettext_lazy("active"),
    "is_active: False": gettext_lazy("no longer active"),
    "is_staff: True": gettext_lazy("may log in to the admin"),
    "is_staff: False": gettext_lazy("may no longer log in to the admin"),
    "is_superuser: True": gettext_lazy("has all permissions"),
    "is_superuser: False": gettext_lazy("no longer has all permissions"),
}
CHANGES = {
    "added": gettext_lazy("added: %(names)s"),
    "removed all": gettext_lazy("removed all"),
    "removed": gettext_lazy("removed: %(names)s"),
    "deleted with the members": gettext_lazy("deleted; members were: %(names)s"),
    "made": gettext_lazy("made: %(names)s"),
    "revoked": gettext_lazy("revoked: %(names)s"),
}


def connect() -> None:
    """Called once, when the apps are ready."""
    user_logged_in.connect(_logged_in)
    user_logged_out.connect(_logged_out)
    user_login_failed.connect(_login_failed)
    user_locked_out.connect(_locked_out)
    pre_save.connect(_before_account, sender=User)
    post_save.connect(_after_account, sender=User)
    post_delete.connect(_account_deleted, sender=User)
    for through in (User.groups.through, User.user_permissions.through, Group.permissions.through):
        m2m_changed.connect(_rights_changed, sender=through)
    pre_delete.connect(_group_deleted, sender=Group)
    post_save.connect(_token_saved, sender=ApiToken)


def record(kind: str, person: str, detail: str = "", request: HttpRequest | None = None) -> None:
    request = request or current_request.get()
    user = getattr(request, "user", None)
    by = user if user is not None and user.is_authenticated else None
    AuditEvent.objects.create(
        kind=kind,
        person=person[:200],
        by_id=by.pk if by else None,
        address=_address(request),
        request_id=structlog.contextvars.get_contextvars().get("request_id", ""),
        detail=detail,
    )
    log.info("audit", kind=str(kind), person=person, by=by.pk if by else None, detail=detail)


def _logged_in(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:
    by_service = getattr(user, "backend", "") == SINGLE_SIGN_ON
    record(Kind.LOGIN, user.get_username(), "single sign-on" if by_service else "", request=request)


def _logged_out(sender: Any, request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None:
        record(Kind.LOGOUT, user.get_username(), request=request)


def _login_failed(sender: Any, credentials: dict[str, Any], request: Any = None, **_: Any) -> None:
    _record_refusal(Kind.LOGIN_FAILED, credentials.get("username"), request)


def _locked_out(sender: Any, request: HttpRequest, username: str | None = None, **_: Any) -> None:
    _record_refusal(Kind.LOCKED_OUT, username, request)


def _record_refusal(kind: str, name: Any, request: HttpRequest | None) -> None:
    """Until the lock ends, further attempts say nothing new, and a program that guesses makes many."""
    person = _known(name)
    locked_out = AuditEvent.objects.filter(
        kind=Kind.LOCKED_OUT,
        person=person[:200],
        address=_address(request),
        at__gt=timezone.now() - settings.AXES_COOLOFF_TIME,
    )
    if not locked_out.exists():
        record(kind, person, request=request)


def _address(request: HttpRequest | None) -> str:
    return client_address(request)[:64] if request else ""


def _known(name: Any) -> str:
    exists = isinstance(name, str) and get_user_model().objects.filter(username=name).exists()
    return str(name) if exists else UNKNOWN


def _before_account(sender: Any, instance: User, raw: bool = False, **_: Any) -> None:
    # Kept on the instance for `_after_account`: only then is the change in the database.
    before = None if raw or not instance.pk else User.objects.filter(pk=instance.pk).first()
    instance._audit_before = before  # type: ignore[attr-defined]


def _after_account(sender: Any, instance: User, created: bool, raw: bool = False, **_: Any) -> None:
    if raw:
        return
    before = getattr(instance, "_audit_before", None)
    old = before or User(is_active=False)
    changed = [
        f"{name}: {getattr(instance, name)}"
        for name in RIGHTS
        if getattr(instance, name) != getattr(old, name)
    ]
    if created or changed:
        record(Kind.ACCOUNT, instance.get_username(), ", ".join(["created"] * created + changed))
    if before is not None and before.password != instance.password:
        record(Kind.PASSWORD, instance.get_username())


def _account_deleted(sender: Any, instance: User, **_: Any) -> None:
    record(Kind.ACCOUNT, instance.get_username(), "deleted")


def _rights_changed(
    sender: Any, instance: Any, action: str, reverse: bool, model: Any, pk_set: Iterable[int] | None, **_: Any
) -> None:
    words = {"post_add": "added", "post_remove": "removed", "post_clear": "removed all"}
    if action not in words or (pk_set is not None and not pk_set):
        return
    names = sorted(str(one) for one in model.objects.filter(pk__in=pk_set or ()))
    record(Kind.PERMISSIONS, str(instance), f"{words[action]} {', '.join(names)}".strip())


def _group_deleted(sender: Any, instance: Group, **_: Any) -> None:
    """Its members lose its rights without any change to themselves, so that they are named here."""
    members = sorted(instance.user_set.values_list("username", flat=True))
    detail = f"deleted with the members {', '.join(members)}" if members else "deleted"
    record(Kind.PERMISSIONS, instance.name, detail)


def _token_saved(
    sender: Any,
    instance: ApiToken,
    created: bool,
    update_fields: Iterable[str] | None,
    raw: bool = False,
    **_: Any,
) -> None:
    if raw:
        return
    if created:
        record(Kind.TOKEN, instance.user.get_username(), f"made {instance.name}")
    elif instance.revoked_at and "revoked_at" in (update_fields or ()):
        record(Kind.TOKEN, instance.user.get_username(), f"revoked {instance.name}")


def person_in_words(event: AuditEvent) -> str:
    return gettext("(unknown account)") if event.person == UNKNOWN else event.person


def detail_in_words(event: AuditEvent) -> str:
    if event.kind in (Kind.PERMISSIONS, Kind.TOKEN):
        for change, sentence in CHANGES.items():
            if event.detail.startswith(change):
                return str(sentence) % {"names": event.detail.removeprefix(change).strip()}
    return ", ".join(str(DETAILS.get(part, part)) for part in event.detail.split(", "))
