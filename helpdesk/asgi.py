"""The web process: `uvicorn helpdesk.asgi:application`."""

import gc
import os
import sys
from importlib import import_module

from helpdesk.startup import one_sentence_errors

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helpdesk.settings")

with one_sentence_errors():
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    from helpdesk.pool import use_pool
    from helpdesk.turnstile import Turnstile

    use_pool()
    application = Turnstile(get_asgi_application())
    import_module(settings.ROOT_URLCONF)  # and with it all that the first request would wait for else

    from assistant.rounds import start_rounds
    from retrieval.embedders import warm_up

# After each query a thread of the pool asks the event loop's for the interpreter; by default it waits 5 ms.
sys.setswitchinterval(0.001)
# What is loaded by now stays: a quarter of a million objects, which each full collection would look at again
# while everybody waits.
gc.collect()
gc.freeze()
warm_up()
start_rounds()
