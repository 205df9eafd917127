#!/usr/bin/env python
"""Django's command line for the helpdesk."""

import os
import sys

from helpdesk.startup import one_sentence_errors


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helpdesk.settings")
    with one_sentence_errors():
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
