"""Tickets know nothing of search and assistant: they work where neither is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALONE = "tests.settings_tickets_only"


SAMPLE = [
    "tests/tickets/test_services.py",
    "tests/tickets/test_history.py",
    "tests/tickets/test_admin.py::test_saving_changes_what_was_edited_and_nothing_else",
    "tests/tickets/test_admin.py::test_merge_asks_previews_and_does_it",
]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    os.environ.get("DJANGO_SETTINGS_MODULE") == ALONE, reason="this run already is such a one"
)
def test_its_tests_pass_without_search_and_assistant() -> None:
    """A sample of them, on a fresh database with the tables of tickets alone."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": ALONE, "TEST_DB_NAME": f"test_alone_{os.getpid()}"}
    options = ["-q", "--create-db", "-p", "no:cacheprovider", "-p", "no:xdist", f"--ds={ALONE}"]
    command = [sys.executable, "-m", "pytest", *options, *SAMPLE]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=290)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_settings_leave_the_others_out() -> None:
    code = "import django; django.setup(); from django.apps import apps; print(sorted(apps.app_configs))"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": ALONE}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert "'tickets'" in done.stdout, done.stderr
    assert "'retrieval'" not in done.stdout
    assert "'assistant'" not in done.stdout
