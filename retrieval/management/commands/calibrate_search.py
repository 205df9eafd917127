"""`manage.py calibrate_search`: sets the bounds of the search from the tickets there are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from retrieval.calibration import FEWEST_VERDICTS, FLOOR_ALERT_RATE, TooFewTickets, calibrate, judged
from retrieval.embedders import EmbeddingError, SearchOff, get_embedder


class Command(BaseCommand):
    help = "Sets floor and bands of the search by alert rate, from a sample of the tickets, without labels."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            profile = calibrate(get_embedder(), _progress)
        except (SearchOff, EmbeddingError, TooFewTickets) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{profile.model}, from {profile.calibrated_tickets} tickets:\n"
            f"  floor   {profile.floor:.3f}  alert rate {FLOOR_ALERT_RATE:.0%}, nothing below it is shown\n"
            f"  likely  {profile.likely:.3f}  alert rate {profile.alert_rate:.0%}, a hit above it stands out"
        )
        if profile.precision is not None:
            self.stdout.write(f"  precision of likely hits by people's verdicts: {profile.precision:.0%}")
        else:
            count = len(judged(profile.model))
            self.stdout.write(
                f"  precision: unknown, people have judged {count} hits so far, {FEWEST_VERDICTS} are needed"
            )


def _progress(titles: Sequence[str]) -> Iterable[str]:
    return tqdm(titles, unit="ticket", disable=not sys.stderr.isatty())
