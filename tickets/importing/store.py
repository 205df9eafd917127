"""Into the database, batch by batch, together with how far that brings the file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..models import ImportRun, Ticket, TicketEvent, Via
from .terms import ImportRefused


class Store:
    """Stores batches in order, two at a time beside the reading: the database's work is the larger part.

    Each batch is one transaction with the tickets, their history and how far that brings the file: all of it
    or nothing. Inside a transaction of the caller everything happens in that one.
    """

    AT_A_TIME = 2

    def __init__(self, run: ImportRun, dry_run: bool) -> None:
        self.run, self.dry_run = run, dry_run
        self.rows = run.rows
        self.waiting: deque[Future[None]] = deque()
        self.last: Future[None] | None = None

    def __enter__(self) -> Store:
        self.pool = None if connection.in_atomic_block else ThreadPoolExecutor(self.AT_A_TIME)
        return self

    def __exit__(self, failed: type[BaseException] | None, *failure: object) -> None:
        try:
            self._wait(0)
            if not (failed or self.dry_run):
                ImportRun.objects.filter(pk=self.run.pk).update(finished_at=timezone.now())
        finally:
            if self.pool:
                self.pool.shutdown()

    def add(self, tickets: list[Ticket], rows: int) -> None:
        begin, self.rows = self.rows, self.rows + rows
        if self.dry_run:
            return
        if self.pool is None:
            self._store(tickets, begin, rows, None)
            return
        self.last = self.pool.submit(self._store_in_thread, tickets, begin, rows, self.last)
        self.waiting.append(self.last)
        self._wait(self.AT_A_TIME)

    def _wait(self, allowed: int) -> None:
        while len(self.waiting) > allowed:
            self.waiting.popleft().result()

    def _store_in_thread(self, *batch: Any) -> None:
        try:
            self._store(*batch)
        finally:
            connection.close()

    def _store(self, tickets: list[Ticket], begin: int, rows: int, before: Future[None] | None) -> None:
        with transaction.atomic():
            _copy(tickets)
            _record_creation(tickets)
            if before:
                before.result()  # in order; if that one failed, so does this one
            run = ImportRun.objects.select_for_update().get(pk=self.run.pk)
            if run.rows != begin:
                # Worded where it is read: this thread knows nothing of the person's language.
                raise ImportRefused(_("Another import of the same file is running."))
            run.rows += rows
            run.created += len(tickets)
            run.rejected += rows - len(tickets)
            run.save(update_fields=["rows", "created", "rejected"])


def _copy(tickets: Sequence[Ticket]) -> None:
    """`bulk_create()` by COPY, which is twice as fast: it neither builds a statement nor reads back what the
    database generates.
    """
    fields = [field for field in Ticket._meta.concrete_fields if not field.generated]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    names = [field.attname for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('tickets_ticket', 'id')) FROM generate_series(1, %s)",
            [len(tickets)],
        )
        for ticket, (pk,) in zip(tickets, cursor.fetchall(), strict=True):
            ticket.pk = pk
        with cursor.copy(f"COPY tickets_ticket ({columns}) FROM STDIN") as copy:
            for ticket in tickets:
                copy.write_row([_plain_value(getattr(ticket, name)) for name in names])


def _plain_value(value: object) -> object:
    """A choice is its value; the driver would take its name."""
    return value.value if isinstance(value, Enum) else value


def _record_creation(tickets: Sequence[Ticket]) -> None:
    """The first line of each history, at the time at which the ticket says that it was created."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO tickets_ticketevent
                (ticket_id, version, kind, field, old, new, actor_id, via, created_at)
            SELECT id, version, %s, '', '', title, reporter_id, %s, created_at
            FROM tickets_ticket WHERE id = ANY(%s) ORDER BY id
            """,
            [TicketEvent.Kind.CREATED.value, Via.IMPORT.value, [ticket.pk for ticket in tickets]],
        )
