"""Settings that work but hardly do what was meant. What cannot work, helpdesk.settings refuses."""

import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register


@register()
def search_is_off_for_want_of_a_key(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    if settings.EMBEDDING_PROVIDER != "voyage" or settings.VOYAGE_API_KEY != "placeholder":
        return []
    return [
        Warning(
            "EMBEDDING_PROVIDER is voyage, but VOYAGE_API_KEY is a placeholder: search by meaning is off.",
            hint="Set VOYAGE_API_KEY, or EMBEDDING_PROVIDER to local or off.",
            id="helpdesk.W001",
        )
    ]


@register()
def more_threads_than_cores(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    cores = os.cpu_count() or 1
    if cores >= settings.EMBED_THREADS:
        return []
    return [
        Warning(
            f"EMBED_THREADS is {settings.EMBED_THREADS} on {cores} cores: that slows the local model down.",
            hint=f"Set EMBED_THREADS to {cores} or less.",
            id="helpdesk.W002",
        )
    ]


@register(Tags.security, deploy=True)
def rehearsal_in_production(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    if settings.ASSISTANT_BACKEND != "rehearsal":
        return []
    return [
        Warning(
            "ASSISTANT_BACKEND is rehearsal: people talk to a script, not to Claude.",
            hint="Set ASSISTANT_BACKEND=claude and ANTHROPIC_API_KEY.",
            id="helpdesk.W003",
        )
    ]


@register(Tags.database, deploy=True)
def embedded_in_production(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    if "embedded" not in settings.DATABASES["default"]["ENGINE"]:
        return []
    return [
        Warning(
            "The embedded Postgres lives and ends with the processes of this checkout.",
            hint="Set DATABASE_URL to a Postgres 16 or newer with pgvector 0.8 or newer.",
            id="helpdesk.W004",
        )
    ]
