"""The tests of tickets with nothing above it: neither search nor assistant is installed."""

import os

os.environ.setdefault("TEST_DB_NAME", "test_tickets_only")

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as EVERYTHING

INSTALLED_APPS = [app for app in EVERYTHING if app not in ("retrieval", "assistant")]
