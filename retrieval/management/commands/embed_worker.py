"""`manage.py embed_worker`: gives every ticket its vector, and keeps doing so."""

from __future__ import annotations

import logging
import os
import signal
import sys
from threading import Event
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError, connection
from tqdm import tqdm

from retrieval import pgvector
from retrieval.bookkeeping import beat
from retrieval.embedders import Embedder, SearchOff, get_embedder, model_key
from retrieval.judging import sort_out_candidates
from retrieval.models import IndexState, WorkerState
from retrieval.prune import Incomplete, prune
from retrieval.worker import LEASE_SECONDS, Worker

logger = logging.getLogger(__name__)

FORCED = 130
MOST_OUTAGES_ONCE = 5


class Command(BaseCommand):
    help = "Embeds tickets whose vector is missing or out of date. Several workers may run at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end when nothing waits any more")
        parser.add_argument(
            "--batch-size", type=int, default=settings.EMBED_BATCH_SIZE, help="texts per call"
        )
        parser.add_argument(
            "--poll", type=float, default=settings.EMBED_POLL_SECONDS, help="seconds between looks"
        )
        parser.add_argument(
            "--lease",
            type=float,
            default=LEASE_SECONDS,
            help="seconds after which the tickets of a worker that was killed are free again",
        )
        parser.add_argument(
            "--prune",
            action="store_true",
            help="delete the vectors of models that are no longer used, and end",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("batch_size", "poll", "lease"):
            if options[name] <= 0:
                raise CommandError(f"--{name.replace('_', '-')} must be above 0.")
        try:
            embedder = get_embedder()
        except SearchOff as off:
            self._off(str(off), off.code, options)
            return
        try:
            pgvector.ensure()
        except pgvector.PgvectorMissing as missing:
            raise CommandError(str(missing)) from missing
        if options["prune"]:
            self._prune(model_key(embedder))
        else:
            self._work(embedder, options)

    def _work(self, embedder: Embedder, options: dict[str, Any]) -> None:
        bar = _progress_bar(model_key(embedder)) if options["once"] and sys.stderr.isatty() else None
        worker = Worker(
            embedder,
            batch_size=options["batch_size"],
            concurrency=settings.EMBED_CONCURRENCY,
            poll_seconds=options["poll"],
            lease_seconds=options["lease"],
            on_progress=(lambda embedded, failed: bar.update(embedded + failed) and None) if bar else None,
        )
        _listen(worker.stopping)
        if options["once"]:
            self._once(worker)
        else:
            logger.info("worker %s keeps the vectors of %s", worker.name, worker.model)
            worker.run()
        if bar:
            bar.close()

    def _once(self, worker: Worker) -> None:
        cause = None
        while not worker.stopping.is_set() and worker.step():
            cause = worker.pauses.cause
            if cause and (cause.permanent or worker.pauses.in_a_row >= MOST_OUTAGES_ONCE):
                break
        worker.finish()
        self.stdout.write(f"{worker.tally.embedded} tickets embedded with {worker.model}.")
        if worker.tally.failed:
            self.stdout.write(
                f"{worker.tally.failed} could not be embedded; the admin shows why under ticket embeddings."
            )
        if cause:
            raise CommandError(str(cause))

    def _prune(self, model: str) -> None:
        try:
            gone = prune(keep=model)
        except Incomplete as incomplete:
            raise CommandError(str(incomplete)) from incomplete
        for name, rows in gone.items():
            self.stdout.write(f"{rows} vectors of {name} deleted.")
        if not gone:
            self.stdout.write(f"Only vectors of {model} are stored; nothing to delete.")

    def _off(self, reason: str, code: str, options: dict[str, Any]) -> None:
        """Without a provider there is nothing to do; a supervised process waits instead of ending again and
        again.
        """
        self.stdout.write(reason)
        if options["once"] or options["prune"]:
            return
        stopping = Event()
        _listen(stopping)
        name = Worker.own_name()
        while not stopping.is_set():
            try:
                beat(name, "", WorkerState.Activity.OFF, 0, code, reason, 0)
                sort_out_candidates()
            except (OperationalError, InterfaceError):
                logger.warning("the database is away; trying again")
            connection.close()
            stopping.wait(30)


def _listen(stopping: Event) -> None:
    """The first signal ends the work in good order, the second one at once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            os._exit(FORCED)
        stopping.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)


def _progress_bar(model: str) -> Any:
    state = IndexState.objects.filter(pk=model).first()
    return tqdm(total=state.total - state.indexed if state else None, unit=" tickets", desc=model)
