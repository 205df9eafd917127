"""`/metrics` for Prometheus: read from the tables when asked, so that every process gives the same figures.

Counters are totals of what is stored; they fall when old rows are deleted, which Prometheus takes as a reset.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from helpdesk import health

# (name, help, labels, SQL that answers the labels and then the number)
COUNTERS = (
    (
        "helpdesk_turns",
        "Turns of the assistant by how they ended",
        ["status"],
        "SELECT known.status, count(turn.id)"
        " FROM (VALUES ('done'), ('failed'), ('interrupted')) AS known (status)"
        " LEFT JOIN assistant_turn AS turn ON turn.status = known.status GROUP BY 1 ORDER BY 1",
    ),
    (
        "helpdesk_turn_tokens",
        "Tokens of the assistant's model",
        ["kind"],
        "SELECT kind, coalesce(sum(tokens), 0) FROM assistant_turn CROSS JOIN LATERAL (VALUES"
        " ('cached', tokens_cached), ('in', tokens_in), ('out', tokens_out)) AS t (kind, tokens)"
        " GROUP BY 1 ORDER BY 1",
    ),
    (
        "helpdesk_searches",
        "Searches by outcome, and by the reason where one was unavailable",
        ["outcome", "reason"],
        "SELECT outcome, reason_code, count(*) FROM retrieval_searchlog GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "helpdesk_worker_embedded",
        "Tickets embedded since the start of each worker",
        ["worker"],
        "SELECT name, embedded FROM retrieval_workerstate ORDER BY 1",
    ),
    (
        "helpdesk_worker_batches",
        "Calls to the embedding provider since the start of each worker",
        ["worker"],
        "SELECT name, batches FROM retrieval_workerstate ORDER BY 1",
    ),
    (
        "helpdesk_worker_batch_seconds",
        "Seconds of those calls together",
        ["worker"],
        "SELECT name, batch_seconds FROM retrieval_workerstate ORDER BY 1",
    ),
    (
        "helpdesk_worker_outages",
        "Calls after which a worker had to pause",
        ["worker"],
        "SELECT name, outages FROM retrieval_workerstate ORDER BY 1",
    ),
)
GAUGES = (
    (
        "helpdesk_tickets",
        "Tickets by status",
        ["status"],
        "SELECT status, count(*) FROM tickets_ticket GROUP BY 1 ORDER BY 1",
    ),
    (
        "helpdesk_turns_active",
        "Turns that wait or are being answered",
        ["status"],
        # Also where there is none: an alert on a series that does not exist never fires.
        "SELECT known.status, count(turn.id) FROM (VALUES ('queued'), ('running')) AS known (status)"
        " LEFT JOIN assistant_turn AS turn ON turn.status = known.status GROUP BY 1 ORDER BY 1",
    ),
    (
        "helpdesk_index_tickets",
        "Tickets by what has become of their vector, by the workers' count",
        ["model", "state"],
        "SELECT model, state, number FROM retrieval_indexstate CROSS JOIN LATERAL (VALUES"
        " ('indexed', indexed), ('failed', failed), ('waiting', greatest(0, total - indexed - failed)))"
        " AS t (state, number) ORDER BY 1, 2",
    ),
    (
        "helpdesk_workers",
        "Workers that reported within 75 seconds, by what they do",
        ["activity"],
        "SELECT known.activity, count(worker.name)"
        " FROM (VALUES ('idle'), ('working'), ('paused'), ('off')) AS known (activity)"
        " LEFT JOIN retrieval_workerstate AS worker ON worker.activity = known.activity"
        " AND worker.heartbeat_at > now() - interval '75 seconds' GROUP BY 1 ORDER BY 1",
    ),
)
# The buckets are seconds, the columns milliseconds.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TIMES = (
    ("helpdesk_embedding_seconds", "Time of embedding a query", "embed_ms"),
    ("helpdesk_search_seconds", "Time of searching with its vector", "search_ms"),
)


class Tables:
    """The collector: one statement a metric."""

    def collect(self) -> Iterator[Metric]:
        for name, text, labels, statement in COUNTERS:
            yield _filled(CounterMetricFamily(name, text, labels=labels), statement)
        for name, text, labels, statement in GAUGES:
            yield _filled(GaugeMetricFamily(name, text, labels=labels), statement)
        for name, text, column in TIMES:
            yield _histogram(name, text, column)
        yield GaugeMetricFamily("helpdesk_healthy", "1 while /healthz says ok", value=_healthy())


def _filled(family: Any, statement: str) -> Metric:
    for *labels, number in _rows(statement):
        family.add_metric([str(label) for label in labels], float(number or 0))
    metric: Metric = family
    return metric


def _histogram(name: str, text: str, column: str) -> Metric:
    counts = ", ".join(f"count(*) FILTER (WHERE {column} <= {bound * 1000})" for bound in BUCKETS)
    ((*below, count, total),) = _rows(
        f"SELECT {counts}, count({column}), coalesce(sum({column}), 0) / 1000.0 FROM retrieval_searchlog"
    )
    buckets = [(str(bound), float(number)) for bound, number in zip(BUCKETS, below, strict=True)]
    family = HistogramMetricFamily(name, text)
    family.add_metric([], [*buckets, ("+Inf", float(count))], float(total))
    return family


def _rows(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def _healthy() -> float:
    return float(health.report()["status"] == "ok")


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """404 unless METRICS_TOKEN is set and sent: nobody learns that there is something to guess."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    if not settings.METRICS_TOKEN or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Http404
    registry = CollectorRegistry()
    registry.register(Tables())
    return HttpResponse(
        generate_latest(registry), content_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"}
    )
