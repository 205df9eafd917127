from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tickets.demo import LOGIN, PASSWORD, seed


class Command(BaseCommand):
    help = "Create demo tickets, the people in them and a login. Running it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.TRIAL:
            raise CommandError(
                "seed_demo creates an administrator whose password is public, so it runs with TRIAL=on only."
            )
        seeded = seed()
        self.stdout.write(f"Demo: {seeded.tickets} new tickets, {seeded.people} new people.")
        self.stdout.write(f"Log in as {LOGIN} / {PASSWORD}")
