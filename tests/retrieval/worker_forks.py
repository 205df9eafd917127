"""Starts real worker processes quickly: loads everything once, then forks one for each line on standard
input.

A line holds the arguments of `manage.py embed_worker`; the answer is the process id of the worker.
"""

import os
import signal
import sys

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                call_command("embed_worker", *line.split())
            finally:
                os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
