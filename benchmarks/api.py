"""Lists and single tickets over the API with few and with many tickets: queries and milliseconds.

    python benchmarks/api.py [SMALL LARGE]

Fills a database of its own, asks through the whole stack of the site but without a network, and drops the
database afterwards. Each address is asked in turn 12 times; the median and the best are shown, and how much
slower the large database is by either.
"""

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("TEST_DB_NAME", "benchmark_api")

ROUNDS = 12
PEOPLE, CATEGORIES = 500, 20
TICKETS = "/api/v1/tickets/"

# One in 20 tickets is unresolved, as after some years; words are drawn from lists, so that some are rare.
FILL = """
    INSERT INTO tickets_ticket (
        title, description, status, priority, category_id, reporter_id, assignee_id, source, resolution,
        duplicate_check, created_at, updated_at, version, status_before_merge)
    SELECT 'printer on floor ' || (ARRAY['one','two','three','four','five','six','seven'])[1 + n %% 7],
           repeat('the device stays silent since this morning and nobody knows why ', 8)
               || CASE WHEN n %% 5000 = 0 THEN 'xylophone' ELSE '' END,
           CASE WHEN n %% 20 = 0 THEN (ARRAY['new','open','pending'])[1 + n / 20 %% 3]
                ELSE (ARRAY['resolved','closed'])[1 + n %% 2] END,
           (ARRAY['low','normal','high','urgent'])[1 + n / 20 %% 4],
           (SELECT min(id) FROM tickets_category) + n %% {categories},
           (SELECT min(id) FROM auth_user) + n %% {people},
           CASE WHEN n %% 3 = 0 THEN NULL ELSE (SELECT min(id) FROM auth_user) + n / 20 %% 50 END,
           'api', '', 'not_needed',
           timestamptz '2020-01-01 00:00Z' + n * interval '7 minutes',
           timestamptz '2020-01-01 00:00Z' + n * interval '7 minutes', 1, ''
    FROM generate_series(%s, %s) AS n
"""

LISTS = {
    "newest": {},
    "200 at once": {"page_size": "200"},
    "oldest first": {"ordering": "created_at"},
    "by last change": {"ordering": "-updated_at"},
    "unresolved": {"unresolved": "true"},
    "one status": {"status": "open"},
    "urgent, unresolved": {"priority": "urgent", "unresolved": "true"},
    "an agent's unresolved": {"assignee": "person7", "unresolved": "true"},
    "one reporter": {"reporter": "person77"},
    "one category": {"category": "category 3"},
    "since a day": {"created_after": "2020-02-10T00:00:00Z", "created_before": "2020-02-11T00:00:00Z"},
    "a rare word": {"q": "xylophone"},
    "a frequent word": {"q": "printer"},
}


def prepare() -> Any:
    from django.contrib.auth.models import Permission, User
    from rest_framework.test import APIClient

    from tickets.api.models import ApiToken
    from tickets.models import Category

    User.objects.bulk_create(User(username=f"person{n}", is_staff=True) for n in range(PEOPLE))
    Category.objects.bulk_create(Category(name=f"Category {n}") for n in range(CATEGORIES))
    # An agent's rights, not a superuser's, so that the queries for them count too.
    owner = User.objects.get(username="person0")
    owner.user_permissions.set(Permission.objects.filter(content_type__app_label="tickets"))
    _token, secret = ApiToken.issue(user=owner, name="benchmark", by=owner)
    return APIClient(headers={"authorization": f"Bearer {secret}"})


def fill(begin: int, end: int) -> None:
    from django.db import connection

    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(FILL.format(people=PEOPLE, categories=CATEGORIES), [begin + 1, end])
        cursor.execute("VACUUM ANALYZE")
    print(f"{end} tickets, filled in {time.perf_counter() - started:.0f} s", flush=True)


def addresses(client: Any) -> dict[str, tuple[str, dict[str, str]]]:
    """The lists, a page far behind, and one ticket with what belongs to it."""
    from tickets.api.pagination import Cursor
    from tickets.models import Ticket

    middle = Ticket.objects.order_by("pk")[Ticket.objects.count() // 2]
    far = Cursor("-created_at", middle.created_at, middle.pk).encode()
    asked = {name: (TICKETS, parameters) for name, parameters in LISTS.items()}
    asked["a page half-way"] = (TICKETS, {"cursor": far})
    asked["one ticket"] = (f"{TICKETS}{middle.pk}/", {})
    asked["its comments"] = (f"{TICKETS}{middle.pk}/comments/", {})
    asked["its history"] = (f"{TICKETS}{middle.pk}/events/", {})
    return asked


def measure(client: Any) -> dict[str, tuple[int, float, float]]:
    """Queries, median and best milliseconds by name."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    asked = addresses(client)
    times: dict[str, list[float]] = {name: [] for name in asked}
    queries = {}
    for _round in range(ROUNDS):
        for name, (address, parameters) in asked.items():
            started = time.perf_counter()
            response = client.get(address, parameters)
            times[name].append((time.perf_counter() - started) * 1000)
            assert response.status_code == 200, response.content
    for name, (address, parameters) in asked.items():
        with CaptureQueriesContext(connection) as captured:
            client.get(address, parameters)
        queries[name] = len(captured)
    return {name: (queries[name], statistics.median(each), min(each)) for name, each in times.items()}


def run(small: int, large: int) -> None:
    from django.conf import settings

    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    client = prepare()
    fill(0, small)
    few = measure(client)
    fill(small, large)
    many = measure(client)
    print(f"{'':24}queries   {small:>9} median/best ms   {large:>9} median/best ms   growth")
    for name, (queries, median, best) in many.items():
        _queries, median_few, best_few = few[name]
        times = f"{median_few:17.1f} /{best_few:6.1f}{median:18.1f} /{best:6.1f}"
        print(f"{name:24}{queries:7}{times}{median / median_few:9.2f} /{best / best_few:5.2f}")


def main() -> None:
    import django
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        run(*([int(argument) for argument in sys.argv[1:3]] or [10_000, 300_000]))
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
