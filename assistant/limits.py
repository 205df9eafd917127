"""What one person may use: tokens a day, turns at once, messages a minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from django.conf import settings
from django.db.models import F, Sum
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from assistant.clock import clock
from assistant.models import Message, Turn
from assistant.numbers import lazy_grouped
from assistant.refusals import Refused

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django_stubs_ext import StrOrPromise

MAX_MESSAGE_CHARACTERS = 100_000
# What the provider reads from its cache costs a tenth, so it counts as a tenth.
CACHE_SHARE = 10
# A queued turn whose stream nobody opens holds no place for longer than this.
QUEUED_COUNTS_FOR = timedelta(minutes=1)


def check_messages_per_minute(user: User) -> None:
    limit = settings.ASSISTANT_MESSAGES_PER_MINUTE
    if not limit:
        return
    minute_ago = timezone.now() - timedelta(minutes=1)
    recent = Message.objects.filter(conversation__user=user, from_person=True, created_at__gt=minute_ago)
    times = list(recent.order_by("-created_at").values_list("created_at", flat=True)[:limit])
    if len(times) >= limit:
        _refuse(
            _("You have sent {limit} messages within a minute, which is the limit. It goes on at {until}."),
            until=times[-1] + timedelta(minutes=1),
            limit=limit,
        )


def check_concurrent_turns(user: User) -> None:
    limit = settings.ASSISTANT_CONCURRENT_TURNS_PER_USER
    turns = Turn.objects.owned_by(user)
    queued = turns.filter(status=Turn.Status.QUEUED, created_at__gt=timezone.now() - QUEUED_COUNTS_FOR)
    if limit and (turns.alive() | queued).count() >= limit:
        raise Refused(
            format_lazy(
                _(
                    "{limit} answers are being written for you already, which is the limit. "
                    "It goes on as soon as one of them is finished or stopped."
                ),
                limit=lazy_grouped(limit),
            )
        )


def check_daily_tokens(user: User) -> None:
    limit = settings.ASSISTANT_DAILY_TOKENS_PER_USER
    if limit and tokens_used_today(user) >= limit:
        _refuse(
            _("Your daily limit of {limit} tokens is used up. It goes on at {until}."),
            until=tomorrow(),
            limit=limit,
        )


def tokens_used_today(user: User) -> int:
    """Input and output tokens of the person's turns since midnight; cached input counts a tenth."""
    today = Turn.objects.owned_by(user).filter(created_at__gte=midnight())
    counted = F("tokens_in") + F("tokens_out") + F("tokens_cached") / CACHE_SHARE
    return int(today.aggregate(used=Sum(counted))["used"] or 0)


def midnight() -> datetime:
    """Of the site: the person's time zone comes from their browser, who could move it on."""
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def tomorrow() -> datetime:
    return midnight() + timedelta(days=1)


def _refuse(text: StrOrPromise, *, until: datetime, limit: int) -> NoReturn:
    params = {"limit": limit, "until": until.isoformat()}
    sentence = format_lazy(text, limit=lazy_grouped(limit), until=clock(until))
    raise Refused(sentence, until=until, params=params)
