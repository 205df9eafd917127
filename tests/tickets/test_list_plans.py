"""The list with many tickets: few queries, and none that reads the whole table."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import CategoryFactory
from tickets.paginator import BoundedPaginator

LIST = "/admin/tickets/ticket/"
MANY, BOUND = 20_000, 2_000

# One ticket in 20 is unresolved, as after some years; "zebra" is rare, "printer" stands in each.
FILL = """
    INSERT INTO tickets_ticket (
        title, description, status, priority, category_id, reporter_id, assignee_id, source, resolution,
        duplicate_check, created_at, updated_at, version, status_before_merge)
    SELECT 'printer ' || n || CASE WHEN n %% 2000 = 0 THEN ' zebra NB-10234' ELSE '' END, '',
           CASE WHEN n %% 20 = 0 THEN (ARRAY['new','open','pending'])[1 + n / 20 %% 3] ELSE 'closed' END,
           (ARRAY['low','normal','high','urgent'])[1 + n / 20 %% 4], %(category)s, %(user)s,
           CASE WHEN n %% 40 = 0 THEN %(user)s END, 'import', '', 'not_needed',
           now() - n * interval '7 minutes', now() - n * interval '7 minutes', 1, ''
    FROM generate_series(1, %(many)s) AS n"""


@pytest.fixture
def many(alice: User) -> Iterator[None]:
    """Tickets with statistics, as autovacuum keeps them."""
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"many": MANY, "user": alice.pk, "category": CategoryFactory().pk})
        cursor.execute("ANALYZE tickets_ticket")
        yield
        cursor.execute("TRUNCATE tickets_ticket CASCADE")
        cursor.execute("ANALYZE tickets_ticket")


PAGES: list[dict[str, str]] = [
    {},
    {"p": "15"},
    *({"o": column} for column in ("1", "-1", "5", "-5", "6", "-6")),  # number, age, last activity
    *({"view": view} for view in ("open", "mine", "waiting", "unassigned", "urgent", "pending", "reported")),
    *({"created": created} for created in ("today", "2026")),
    *({"q": words} for words in ("zebra", "nb-10234", "#4711")),
    {"q": "zebra", "view": "open", "o": "6"},
]


@pytest.mark.django_db(transaction=True)
def test_no_page_of_the_list_reads_the_whole_table(
    agent_client: Client, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedPaginator, "MAX_ROWS", BOUND)
    for query in PAGES:
        with CaptureQueriesContext(connection) as captured:
            response = agent_client.get(LIST, query)
        assert response.status_code == 200, query
        assert len(captured) <= 15, query
        for sql in (each["sql"] for each in captured):
            if '"tickets_ticket"' in sql:
                assert rows_read(sql) <= BOUND + 1, (query, sql)


def rows_read(sql: str) -> int:
    """How many rows of the ticket table or its indexes the query looks at, those thrown away included."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        plan: Any = cursor.fetchone()[0]
    return sum(
        _looked_at(node) for node in _nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
    )


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def _looked_at(node: Any) -> int:
    if node.get("Relation Name") != "tickets_ticket":
        return 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])
