"""Import of a made-up file: tickets a second and peak memory.

    python benchmarks/import.py [ROWS]

Works in a database of its own, which it drops afterwards.
"""

import csv
import json
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("TEST_DB_NAME", "benchmark_import")

TEXTS = Path(__file__).parent.parent / "tickets" / "demo" / "tickets.json"
COLUMNS = ("Subject", "description", "status", "priority", "category", "reporter", "created_at")
PEOPLE = 200


def write(path: Path, rows: int) -> None:
    """The texts of the demo tickets, two to a ticket, in several states."""
    draw = random.Random(1)
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(rows):
            one, other = draw.choices(texts, k=2)
            text = f"{one['description']}\n{other['description']}"
            status, priority = draw.choice(["new", "Open", "closed"]), draw.choice(["low", "normal", "high"])
            day = f"2025-{1 + number % 11:02d}-{1 + number % 28:02d}T{number % 24:02d}:00:00"
            person, category = f"user{number % PEOPLE}", f"Category {number % 10}"
            writer.writerow([f"{one['title']} ({number})", text, status, priority, category, person, day])


def run(rows: int) -> None:
    from django.contrib.auth.models import User

    from tickets.importing import Options, import_tickets

    User.objects.bulk_create(User(username=f"user{number}") for number in range(PEOPLE))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tickets.csv"
        write(path, rows)
        options = Options(mapping={"title": "Subject"}, create_categories=True)
        started = time.perf_counter()
        result = import_tickets(path, options)
        seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    speed = result.created / seconds
    print(f"{result.created} tickets in {seconds:.1f} s: {speed:.0f}/s, {megabytes:.0f} MB at most")


def main() -> None:
    import django
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
