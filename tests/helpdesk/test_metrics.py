"""What Prometheus reads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from assistant.models import Conversation, Turn
from retrieval.models import IndexState, SearchLog, WorkerState
from tests.factories import TicketFactory, UserFactory

pytestmark = pytest.mark.django_db

TOKEN = "only-prometheus-knows"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def token(settings: Any) -> str:
    settings.METRICS_TOKEN = TOKEN
    return TOKEN


def read(client: Client) -> dict[str, float]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in families
        for sample in family.samples
    }


def test_hidden_without_a_token(client: Client, settings: Any) -> None:
    for given in ("", "Bearer ", "Bearer guess", f"Basic {TOKEN}"):
        assert client.get("/metrics", headers={"Authorization": given}).status_code == 404
    settings.METRICS_TOKEN = TOKEN
    for given in ("", "Bearer ", "Bearer guess", f"Basic {TOKEN}", "Bearer schlüssel"):
        assert client.get("/metrics", headers={"Authorization": given}).status_code == 404


def test_empty_tables(client: Client, token: str) -> None:
    found = read(client)
    assert found["helpdesk_healthy[]"] == 0
    assert found["helpdesk_search_seconds_count[]"] == 0
    for activity in ("idle", "working", "paused", "off"):
        assert found[f"helpdesk_workers['{activity}']"] == 0
    for status in ("queued", "running"):
        assert found[f"helpdesk_turns_active['{status}']"] == 0
        assert f"helpdesk_turns_total['{status}']" not in found
    assert found["helpdesk_turns_total['failed']"] == 0


def test_counts_what_happened(client: Client, token: str) -> None:
    conversation = Conversation.objects.create(user=UserFactory())
    for status in ("done", "done", "failed", "running"):
        Turn.objects.create(conversation=conversation, status=status, tokens_in=100, tokens_out=7)
    SearchLog.objects.create(text="a", outcome="found", embed_ms=30, search_ms=4)
    SearchLog.objects.create(text="b", outcome="unavailable", reason_code="provider_down", embed_ms=20_000)
    IndexState.objects.create(model="voyage-4:1024", total=10, indexed=7, failed=1)
    WorkerState.objects.create(
        name="host:1", heartbeat_at=timezone.now(), embedded=7, batches=2, outages=1, batch_seconds=0.5
    )
    TicketFactory(title="Printer jams")
    found = read(client)
    expected = {
        "helpdesk_turns_total['done']": 2,
        "helpdesk_turns_total['failed']": 1,
        "helpdesk_turn_tokens_total['in']": 400,
        "helpdesk_turn_tokens_total['out']": 28,
        "helpdesk_searches_total['', 'found']": 1,
        "helpdesk_searches_total['provider_down', 'unavailable']": 1,
        "helpdesk_embedding_seconds_bucket['0.025']": 0,
        "helpdesk_embedding_seconds_bucket['0.05']": 1,
        "helpdesk_embedding_seconds_bucket['+Inf']": 2,
        "helpdesk_embedding_seconds_sum[]": 20.03,
        "helpdesk_search_seconds_count[]": 1,
        "helpdesk_index_tickets['voyage-4:1024', 'waiting']": 2,
        "helpdesk_worker_batches_total['host:1']": 2,
        "helpdesk_worker_outages_total['host:1']": 1,
        "helpdesk_worker_embedded_total['host:1']": 7,
        "helpdesk_workers['idle']": 1,
        "helpdesk_workers['working']": 0,
        "helpdesk_turns_active['running']": 1,
        "helpdesk_tickets['new']": 1,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_a_worker_writes_its_figures(client: Client, token: str) -> None:
    TicketFactory(title="Printer jams")
    call_command("embed_worker", once=True, verbosity=0)
    worker = WorkerState.objects.get()
    assert (worker.batches, worker.embedded, worker.outages) == (1, 1, 0)
    assert worker.batch_seconds > 0
    assert read(client)[f"helpdesk_worker_batches_total['{worker.name}']"] == 1


def test_the_dashboard_asks_for_what_there_is(client: Client, token: str) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "helpdesk.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    text = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).content.decode()
    declared = set(re.findall(r"^# TYPE (\w+)", text, flags=re.M))
    used = {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"helpdesk_\w+", asked)}
    assert used - declared == set()
    assert len(used) > 8
