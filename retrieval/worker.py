"""The worker that gives every ticket its vector: new, edited, imported, or of another model, by one
procedure.

All database work happens in the thread that calls `step()`, in short transactions; calls to the provider
happen in a small pool of threads that never touch the database. So no lock and no transaction is held while a
provider thinks.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError, connection

from .bookkeeping import beat, count_index, forget_old_workers, mark_swept, sweep_begins
from .calibration import calibrate_first
from .duplicates import check_due_tickets
from .embedders import Embedder, EmbeddingError, model_key
from .embedding import Embedded, batches, embed
from .judging import sort_out_candidates
from .models import WorkerState
from .queue import WINDOW, Job, Queue

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

# What a killed worker had in hand waits that long for another one; who is alive renews three times as often.
LEASE_SECONDS = 30.0
BEAT_SECONDS = 10.0
COUNT_SECONDS = 10.0
SORT_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
# For each call under way one more batch is claimed and read, so that no call waits for the database even if
# all of them come back at once.
READY_PER_CALL = 1


@dataclass(slots=True)
class Batch:
    """Claimed tickets of one call to the provider."""

    jobs: list[Job]
    call: Future[Embedded]


@dataclass(slots=True)
class Tally:
    """What the worker has done since its start."""

    embedded: int = 0
    failed: int = 0
    batches: int = 0
    outages: int = 0
    batch_seconds: float = 0.0


@dataclass(slots=True)
class Pauses:
    """How long to leave the provider alone: longer with each outage in a row, or as long as it asks."""

    in_a_row: int = 0
    until: float = 0.0
    cause: EmbeddingError | None = None

    def add(self, cause: EmbeddingError) -> float:
        """Starts the next pause; answers its seconds. Calls already under way count as one outage."""
        if self.cause is None or self.is_over():
            self.in_a_row += 1
        seconds = min(FIRST_PAUSE * 2 ** (self.in_a_row - 1), LONGEST_PAUSE)
        self.until = max(
            self.until, monotonic() + (seconds if cause.retry_after is None else cause.retry_after)
        )
        self.cause = cause
        return self.remaining()

    def remaining(self) -> float:
        return max(0.0, self.until - monotonic())

    def is_over(self) -> bool:
        return monotonic() >= self.until

    def clear(self) -> None:
        self.in_a_row, self.until, self.cause = 0, 0.0, None


@dataclass(slots=True)
class Sweep:
    """One pass over all tickets by id. Only one that found nothing to do proves that everything is done."""

    began_at: datetime
    window: list[int] = field(default_factory=list)
    after: int = 0
    seen_all: bool = False
    claimed: bool = False
    others_at_work: bool = False


class Worker:
    """`step()` does one piece of work and says whether there is more; `run()` only loops and sleeps."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        batch_size: int,
        concurrency: int = 1,
        poll_seconds: float = 5.0,
        lease_seconds: float = LEASE_SECONDS,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.embedder = embedder
        self.model = model_key(embedder)
        self.batch_size = min(batch_size, embedder.batch_texts)
        self.concurrency = concurrency if embedder.remote else 1
        self.poll_seconds = poll_seconds
        self.queue = Queue(self.model, lease_seconds)
        self.name = self.own_name()
        self.tally = Tally()
        self.pauses = Pauses()
        self.stopping = Event()
        self._lease_seconds = lease_seconds
        self._on_progress = on_progress
        self._pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="embed")
        # Claimed and not read yet, read and not handed out yet, handed out. If the database goes away in
        # between, they are here when it comes back, and do not wait for the end of their leases.
        self._claimed: list[int] = []
        self._ready: deque[list[Job]] = deque()
        self._under_way: list[Batch] = []
        self._sweep: Sweep | None = None
        self._beaten_at = self._counted_at = self._sorted_at = self._renewed_at = -1e9
        self._uncounted = True
        self._calibrated = False

    @staticmethod
    def own_name() -> str:
        return f"{socket.gethostname()}:{os.getpid()}"

    # -- the loop ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Works until `stopping` is set, then stores what is under way; outlives losses of the database."""
        losses = 0
        while not self.stopping.is_set():
            try:
                if not self.step():
                    self._rest()
                losses = 0
            except (OperationalError, InterfaceError) as error:
                losses += 1
                self._database_lost(error, losses)
        self.finish()

    def finish(self) -> None:
        """Stores what is under way, gives back what was only claimed, and signs off."""
        try:
            self._give_back_ready()
            while self._under_way:
                self._renew_leases()
                self._collect()
            self._count(force=True)
            self._beat(WorkerState.Activity.STOPPED, force=True)
        except (OperationalError, InterfaceError):
            logger.warning("the database is away; what was claimed is free again when its lease ends")
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def step(self) -> bool:
        """One piece of work: hand out batches, take in what has come back. Answers whether there is more to
        do.
        """
        self._beat(WorkerState.Activity.WORKING if self._under_way else WorkerState.Activity.IDLE)
        self._renew_leases()  # first, or after a long outage we would claim what we have in hand
        self._sort_out_pairs()
        if not self.pauses.is_over():
            self._beat(WorkerState.Activity.PAUSED)
            if self._under_way:
                self._collect()
            else:
                self.stopping.wait(min(self.pauses.remaining(), BEAT_SECONDS))
            return True
        while not self.stopping.is_set() and len(self._under_way) < self._capacity():
            if not self._hand_out():
                break
        if not self._under_way:
            return self._end_sweep() or self._calibrate() or self._check_duplicates()
        self._collect()
        return True

    def _sort_out_pairs(self) -> None:
        """Once a minute, whatever the provider does: tickets are solved while it is away."""
        if monotonic() - self._sorted_at > SORT_SECONDS:
            sort_out_candidates()
            self._sorted_at = monotonic()

    def _calibrate(self) -> bool:
        """Once, as soon as there is something to calibrate by. There is never more to do."""
        self._calibrated = self._calibrated or self.stopping.is_set() or calibrate_first(self.embedder)
        return False

    def _check_duplicates(self) -> bool:
        """Only while no vector is wanted. Answers whether more tickets are due."""
        return not self.stopping.is_set() and check_due_tickets(self.embedder)

    def _capacity(self) -> int:
        """After an outage one call tries whether the provider is back."""
        return 1 if self.pauses.cause else self.concurrency * (1 + READY_PER_CALL)

    def _rest(self) -> None:
        # Nothing is wanted from the database while we sleep: it may be restarted or count our connection.
        connection.close()
        self.stopping.wait(self.poll_seconds)

    def _database_lost(self, error: Exception, losses: int) -> None:
        logger.warning("the database is away (%s); trying again", str(error).strip().split("\n")[0])
        connection.close()
        self._sweep = None
        self.stopping.wait(min(0.5 * 2**losses, 30.0))

    # -- handing out ---------------------------------------------------------------------------------------

    def _hand_out(self) -> bool:
        """Sends one batch to the pool; answers whether there was one."""
        if not self._ready and not self._claim():
            return False
        jobs = self._ready.popleft()
        documents = [job.document for job in jobs]
        self._under_way.append(Batch(jobs, self._pool.submit(embed, self.embedder, documents)))
        return True

    def _claim(self) -> bool:
        """Claims and reads the next tickets into lots for one call each; answers whether there are any."""
        while not self._ready:
            if not self._claimed and not self._claim_ids():
                return False
            jobs = self.queue.read(self._claimed, self.embedder.window_bytes, dilutes=self.embedder.dilutes)
            self._store_blank([job for job in jobs if job.document.is_blank])
            jobs = [job for job in jobs if not job.document.is_blank]
            documents = [job.document for job in jobs]
            for lot in batches(documents, self.batch_size, self.embedder.batch_bytes):
                self._ready.append([jobs[number] for number in lot])
            self._claimed.clear()
        return True

    def _claim_ids(self) -> list[int]:
        """The tickets of the next batch, which may be half empty where other workers have taken the rest."""
        sweep = self._sweep = self._sweep or Sweep(began_at=sweep_begins())
        while len(self._claimed) <= self.batch_size // 2 and self._look(sweep):
            most = self.batch_size - len(self._claimed)
            claim = self.queue.claim(sweep.window[:most])
            del sweep.window[:most]
            self._claimed += claim.ids
            sweep.others_at_work |= claim.others_at_work
        sweep.claimed |= bool(self._claimed)
        return self._claimed

    def _look(self, sweep: Sweep) -> bool:
        """Whether there are tickets in the window, a new one if need be."""
        if not sweep.window and not sweep.seen_all:
            sweep.window = self.queue.waiting_ids(sweep.after)
            sweep.after = max(sweep.window, default=sweep.after)
            sweep.seen_all = len(sweep.window) < WINDOW
        return bool(sweep.window)

    def _store_blank(self, jobs: list[Job]) -> None:
        """A text without a word has no meaning: all such tickets would be each other's twins."""
        if jobs:
            self.queue.store(jobs, [None] * len(jobs))

    def _end_sweep(self) -> bool:
        """The sweep came to its end and nothing is under way. Answers whether another one is worth while."""
        sweep, self._sweep = self._sweep, None
        if sweep is None:
            return False
        self._count(force=self._uncounted or sweep.claimed)
        if not sweep.claimed and not sweep.others_at_work:
            mark_swept(self.model, sweep.began_at)
        return sweep.claimed and not self.stopping.is_set()

    # -- taking in -----------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Waits for a call to come back (or for the next heartbeat) and stores what it brought."""
        wait([batch.call for batch in self._under_way], timeout=1.0, return_when=FIRST_COMPLETED)
        for batch in [batch for batch in self._under_way if batch.call.done()]:
            self._take_in(batch)
            # Only now: if the database fails before, the vectors are stored after it has come back.
            self._under_way.remove(batch)
        self._count()
        self._beat(WorkerState.Activity.WORKING)

    def _take_in(self, batch: Batch) -> None:
        result = batch.call.result()
        self.tally.batches += 1
        self.tally.batch_seconds += result.seconds
        jobs, vectors = _embedded(batch.jobs, result)
        if jobs:
            self.tally.embedded += self.queue.store(jobs, vectors)
        for number, error in result.failures.items():
            self.queue.fail(batch.jobs[number], str(error))
        self.tally.failed += len(result.failures)
        self._uncounted = True
        if result.outage:
            self._pause(batch, result, result.outage)
        else:
            self.pauses.clear()
        self._report(batch, len(jobs), len(result.failures))

    def _pause(self, batch: Batch, result: Embedded, cause: EmbeddingError) -> None:
        self.queue.release(
            [job.ticket_id for n, job in enumerate(batch.jobs) if n not in result.vectors | result.failures]
        )
        self._give_back_ready()
        self._sweep = None
        self.tally.outages += 1
        seconds = self.pauses.add(cause)
        logger.warning("%s Pausing for %.0f s.", cause, seconds)
        self._beat(WorkerState.Activity.PAUSED, force=True)

    def _give_back_ready(self) -> None:
        """What waits for its call, in the pool or before it."""
        for batch in [batch for batch in self._under_way if batch.call.cancel()]:
            self._under_way.remove(batch)
            self._ready.append(batch.jobs)
        while self._ready:
            self.queue.release([job.ticket_id for job in self._ready[0]])
            self._ready.popleft()
        self.queue.release(self._claimed)
        self._claimed.clear()

    def _renew_leases(self) -> None:
        """Of everything in hand: what lies ready behind a slow call is held as long as the call itself."""
        if monotonic() - self._renewed_at > self._lease_seconds / 3:
            lots = [*self._ready, *(batch.jobs for batch in self._under_way)]
            self.queue.renew([*self._claimed, *(job.ticket_id for jobs in lots for job in jobs)])
            self._renewed_at = monotonic()

    # -- telling -------------------------------------------------------------------------------------------

    def _report(self, batch: Batch, embedded: int, failed: int) -> None:
        if self._on_progress:
            self._on_progress(embedded, failed)
        elif embedded or failed:
            logger.info("embedded %d tickets, %d failed, %s", embedded, failed, self.model)

    def _count(self, *, force: bool = False) -> None:
        """Tells searches how far the index has come, not more often than the count is cheap."""
        started = monotonic()
        if force or (self._uncounted and started - self._counted_at > COUNT_SECONDS):
            count_index(self.model)
            self._uncounted = False
            # A count that takes long is taken more rarely.
            self._counted_at = monotonic() + 20 * (monotonic() - started)

    def _beat(self, activity: WorkerState.Activity, *, force: bool = False) -> None:
        if force or monotonic() - self._beaten_at > BEAT_SECONDS:
            if self._beaten_at < 0:
                forget_old_workers()
            cause = self.pauses.cause if activity == WorkerState.Activity.PAUSED else None
            code, reason = (cause.code, str(cause)) if cause else ("", "")
            beat(
                self.name, self.model, activity, self.tally.embedded, code, reason, self.pauses.remaining(),
                batches=self.tally.batches, outages=self.tally.outages,
                batch_seconds=self.tally.batch_seconds,
            )  # fmt: skip
            self._beaten_at = monotonic()


def _embedded(jobs: list[Job], result: Embedded) -> tuple[list[Job], list[NDArray[np.float32] | None]]:
    """The jobs that have a vector, as they were embedded in the end, and the vectors."""
    numbers = sorted(result.vectors)
    done = [Job(jobs[n].ticket_id, jobs[n].content_hash, result.documents[n]) for n in numbers]
    return done, [result.vectors[n] for n in numbers]
