"""The site as `chat_load.py` serves it: with test settings, on the benchmark's database and Claude."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

from django.conf import settings

settings.DATABASES["default"]["NAME"] = os.environ["BENCH_SITE_DATABASE"]
settings.ANTHROPIC_BASE_URL = os.environ["BENCH_SITE_CLAUDE"]

from helpdesk.asgi import application  # noqa: E402

__all__ = ["application"]
