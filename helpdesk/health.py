"""The short report behind /healthz: what a monitor has to know, without a login and without secrets."""

from __future__ import annotations

import time
from typing import Any

import structlog
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils.translation import override

from helpdesk.postgres import EmbeddedPostgresError
from helpdesk.startup import unreachable_sentence

log = structlog.get_logger("helpdesk.health")

WANTED = (("tickets", "ticket"), ("retrieval", "workerstate"))


def report() -> dict[str, Any]:
    """Status `ok` or `unavailable`, and one reason (code, sentence) for each thing that needs a person."""
    database = database_state()
    worker = worker_state() if database["ok"] else None
    reasons = [database["reason"], worker and worker["reason"], *(quick_failures() if database["ok"] else [])]
    return {
        "status": "unavailable" if any(reasons) else "ok",
        "reasons": [reason for reason in reasons if reason],
        "database": {name: value for name, value in database.items() if name != "reason"},
        "worker": worker and {name: value for name, value in worker.items() if name != "reason"},
        "search": {"provider": settings.EMBEDDING_PROVIDER, **(index_state() if database["ok"] else {})},
        "assistant": {"backend": settings.ASSISTANT_BACKEND},
    }


def database_state() -> dict[str, Any]:
    started = time.perf_counter()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, EmbeddedPostgresError) as error:
        log.error("database unreachable", reason=unreachable_sentence(error))
        return {"ok": False, "reason": _reason("database", "The database cannot be reached.")}
    missing = _missing_tables()
    if missing:
        sentence = "The database is not migrated: run `manage.py migrate`."
        return {"ok": False, "reason": _reason("migrations", sentence)}
    return {"ok": True, "ms": round((time.perf_counter() - started) * 1000, 1), "reason": None}


def worker_state() -> dict[str, Any] | None:
    """None where no worker is expected: search by meaning is off or not installed."""
    if not apps.is_installed("retrieval") or settings.EMBEDDING_PROVIDER == "off":
        return None
    from retrieval.health.stored import workers_alive
    from retrieval.models import WorkerState

    states = list(workers_alive().values_list("activity", "reason"))
    if not states:
        sentence = "No embed_worker has reported: new tickets are not searchable by meaning. Start it."
        return {"alive": 0, "reason": _reason("worker", sentence)}
    paused = [reason for activity, reason in states if activity == WorkerState.Activity.PAUSED]
    if len(paused) == len(states):
        return {"alive": len(states), "reason": _reason("worker_paused", f"embed_worker pauses. {paused[0]}")}
    return {"alive": len(states), "reason": None}


def quick_failures() -> list[dict[str, str]]:
    """Of the checks of `manage.py check_index` those that take a few milliseconds and ask no provider."""
    if not apps.is_installed("retrieval"):
        return []
    from retrieval.health import State, run

    with override("en"):  # monitors compare texts
        lines = run(probes=False, only_quick=True)
    return [_reason(one.name, f"{one.figure}. {one.advice}") for one in lines if one.state == State.FAIL]


def index_state() -> dict[str, Any]:
    """How many tickets are searchable by meaning, by the workers' own count."""
    if not apps.is_installed("retrieval"):
        return {}
    from retrieval.models import IndexState

    newest = IndexState.objects.order_by("-counted_at").values("model", "indexed", "total", "failed").first()
    return dict(newest or {})


def _missing_tables() -> bool:
    tables = [f"{app}_{model}" for app, model in WANTED if apps.is_installed(app)]
    statement = "SELECT count(*) FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL"
    with connection.cursor() as cursor:
        cursor.execute(statement, [tables])
        return bool(cursor.fetchone()[0] < len(tables))


def _reason(code: str, sentence: str) -> dict[str, str]:
    return {"code": code, "message": sentence}
