"""The web process: `uvicorn helpdesk.asgi:application`."""

import os

from helpdesk.startup import one_sentence_errors

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helpdesk.settings")

with one_sentence_errors():
    from django.core.asgi import get_asgi_application

    from helpdesk.turnstile import Turnstile

    application = Turnstile(get_asgi_application())
