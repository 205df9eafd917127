"""The agents' pages with few and with many tickets: queries, median and 95th percentile in milliseconds.

    python benchmarks/admin.py [SIZE …]        (default: 10000 100000 300000)

Fills a database of its own, asks as an agent through the whole stack of the site but without a network, and
drops the database afterwards. All pages are asked in turn, so that the machine's other work weighs on each
alike. Exits with 1 if the list, a ticket or the inbox grow by more than 2 from the first size to the last, or
if the list needs more than 15 queries. The panel compares with every vector and grows with their number, a
view or a search with what it finds. The pairs that wait in the inbox grow along with the tickets, and as many
that nobody has judged before their tickets were solved.
"""

from __future__ import annotations

import os
import sys
import time
from statistics import median, quantiles
from typing import Any

os.environ.setdefault("TEST_DB_NAME", "benchmark_admin")

import api

ROUNDS = 21
DIMENSIONS = 512
LIST = "/admin/tickets/ticket/"
MOST_GROWTH, MOST_QUERIES = 2.0, 15

LISTS = {
    "list": {},
    "list, my open": {"view": "mine"},
    "list, waiting for me": {"view": "waiting"},
    "list, unassigned": {"view": "unassigned"},
    "list, urgent": {"view": "urgent"},
    "list, duplicates": {"view": "duplicates"},
    "list, by activity": {"o": "-6"},
    "list, page 50": {"p": "50"},
    "list, one month": {"created": "2020-02"},
    "search, rare word": {"q": "xylophone"},
    "search, frequent word": {"q": "printer"},
    "search, #number": {"q": "#4711"},
}
# What must not grow with the number of tickets. A search may: it finds more.
STEADY = {"list", "ticket", "inbox"}

COMMENTS = """
    INSERT INTO tickets_comment (ticket_id, author_id, body, internal, created_at)
    SELECT n - n %% 10, (SELECT min(id) FROM auth_user) + n %% 50, 'Still the same here.', n %% 3 = 0, now()
    FROM generate_series(%s, %s) AS n WHERE n >= 10"""
# One pair for each unresolved ticket (1 in 20), and one for as many of the solved ones.
CANDIDATES = """
    INSERT INTO retrieval_duplicatecandidate (ticket_id, candidate_id, similarity, score, likely, matched,
        identifiers, model, state, judgement, created_at)
    SELECT id, id - 7, 0.8, 0.8, id %% 3 = 0, '{meaning}', '{}', %s, 'open', '', created_at
    FROM tickets_ticket WHERE id > 7 AND (status IN ('new', 'open', 'pending') OR id %% 20 = 1)"""


def agent() -> Any:
    """A logged-in agent with an agent's rights, not a superuser's, so that the queries for them count too."""
    from django.contrib.auth.models import Group, User
    from django.test import Client

    api.prepare()
    person = User.objects.get(username="person0")
    person.groups.add(Group.objects.get(name="agent"))
    client = Client()
    client.force_login(person)
    return client


def fill(begin: int, end: int) -> None:
    """Tickets with vectors, comments, and pairs that wait in the inbox."""
    import corpus
    from django.db import connection

    api.fill(begin, end)
    model = f"use-multilingual-3:{DIMENSIONS}"
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE retrieval_ticketembedding, retrieval_duplicatecandidate")
        cursor.execute(COMMENTS, [begin + 1, end])
        cursor.execute(CANDIDATES, [model])
    corpus.add_vectors(model, corpus.vectors(end, DIMENSIONS))
    _say_that_the_index_is_complete(model, end)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")


def _say_that_the_index_is_complete(model: str, count: int) -> None:
    from django.utils import timezone

    from retrieval.models import IndexState, SearchProfile
    from tickets.models import Ticket

    now = timezone.now()
    state = {"total": count, "indexed": count, "last_id": Ticket.objects.order_by("pk").last().pk}  # type: ignore[union-attr]
    IndexState.objects.update_or_create(
        model=model, defaults=state | {"counted_at": now, "swept_at": now, "completed_at": now}
    )
    SearchProfile.objects.update_or_create(
        model=model, defaults={"floor": 0.4, "likely": 0.6, "calibrated_at": now}
    )


def addresses() -> dict[str, tuple[str, dict[str, str]]]:
    from tickets.models import Ticket

    middle = Ticket.objects.filter(status="open").order_by("pk")[
        Ticket.objects.filter(status="open").count() // 2
    ]
    asked = {name: (LIST, parameters) for name, parameters in LISTS.items()}
    asked["ticket"] = (f"{LIST}{middle.pk}/change/", {})
    asked["panel"] = (f"{LIST}{middle.pk}/similar/", {})
    asked["inbox"] = (f"{LIST}duplicates/", {})
    return asked


def measure(client: Any) -> dict[str, dict[str, Any]]:
    asked = addresses()
    times: dict[str, list[float]] = {name: [] for name in asked}
    queries = {name: _queries(client, *where) for name, where in asked.items()}
    for _round in range(ROUNDS):
        for name, (address, parameters) in asked.items():
            started = time.perf_counter()
            client.get(address, parameters)
            times[name].append((time.perf_counter() - started) * 1000)
    return {
        name: {"queries": queries[name], "median": median(each), "p95": quantiles(each, n=20)[-1]}
        for name, each in times.items()
    }


def _queries(client: Any, address: str, parameters: dict[str, str]) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client.get(address, parameters)  # the first request of a process loads templates
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address, parameters)
    assert response.status_code == 200, (address, response.status_code)
    return len(captured)


def report(sizes: list[int], measured: list[dict[str, dict[str, Any]]]) -> int:
    """Prints the table; answers how many bounds are broken."""
    head = "".join(f"{size:>12} ms /   p95" for size in sizes)
    print(f"{'':24}queries{head}   growth")
    broken = 0
    for name in measured[-1]:
        cells = "".join(f"{one[name]['median']:15.1f} /{one[name]['p95']:6.1f}" for one in measured)
        growth = measured[-1][name]["median"] / measured[0][name]["median"]
        queries = max(one[name]["queries"] for one in measured)
        too_much = (name in STEADY and growth > MOST_GROWTH) or (
            name.startswith("list") and queries > MOST_QUERIES
        )
        broken += too_much
        print(f"{name:24}{queries:7}{cells}{growth:9.2f}{'  too much' if too_much else ''}")
    return broken


def run(sizes: list[int]) -> int:
    from django.conf import settings

    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    client = agent()
    measured = []
    for begin, end in zip([0, *sizes], sizes, strict=False):
        fill(begin, end)
        measured.append(measure(client))
    return report(sizes, measured)


def main() -> int:
    import django
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        return min(run([int(size) for size in sys.argv[1:]] or [10_000, 100_000, 300_000]), 1)
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    sys.exit(main())
