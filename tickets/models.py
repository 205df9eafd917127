"""Tickets, what is said about them, and their history. The rules live here and so hold on every path."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.db import connection, models, transaction
from django.db.models import F, Func, Q, Subquery
from django.db.models.functions import Lower
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import clock
from .fields import CleanTextField, TitleField, UnselectedSearchVectorField, refuse_blank
from .labels import category_label
from .querysets import UNRESOLVED, AppendOnlyQuerySet, TicketQuerySet

MERGE_LOCK = 7_316_201  # any number that no other advisory lock of this database uses
MAX_TEXT = 1_000_000  # characters; far above any pasted log, far below what would hurt the database


class Category(models.Model):
    name = TitleField(_("name"), max_length=80, validators=[refuse_blank])

    class Meta:
        verbose_name = _("category")
        verbose_name_plural = _("categories")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="tickets_category_name",
                violation_error_message=_("There is already a category with this name."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """Its name for people; `name` is what histories, exports and programs have."""
        return category_label(self.name)


class Via(models.TextChoices):
    """Through what something was done."""

    CHAT = "chat", _("chat")
    ADMIN = "admin", _("admin")
    API = "api", _("API")
    IMPORT = "import", _("import")
    SYSTEM = "system", _("system")


class StaleTicket(Exception):
    """Somebody else has changed the ticket since it was read. `current` is the ticket as it is now (locked no
    longer), `events` what has happened since, oldest first."""

    def __init__(self, current: Ticket, expected_version: int) -> None:
        self.current = current
        self.events = list(current.events.select_related("actor").filter(version__gt=expected_version))
        super().__init__(
            gettext("Ticket #%(id)s has been changed by somebody else in the meantime.") % {"id": current.pk}
        )


class Ticket(models.Model):
    class Status(models.TextChoices):
        NEW = "new", _("new")
        OPEN = "open", _("open")
        PENDING = "pending", _("pending")
        RESOLVED = "resolved", _("resolved")
        CLOSED = "closed", _("closed")

    class Priority(models.TextChoices):
        LOW = "low", _("low")
        NORMAL = "normal", _("normal")
        HIGH = "high", _("high")
        URGENT = "urgent", _("urgent")

    class Source(models.TextChoices):
        CHAT = "chat", _("chat")
        ADMIN = "admin", _("admin")
        API = "api", _("API")
        IMPORT = "import", _("import")

    class DuplicateCheck(models.TextChoices):
        NOT_NEEDED = "not_needed", _("not needed")
        SEARCHED = "searched", _("searched")
        UNAVAILABLE = "unavailable", _("search was unavailable")
        SKIPPED = "skipped", _("skipped")

    CHANGEABLE = frozenset(
        {
            "title",
            "description",
            "status",
            "priority",
            "category",
            "reporter",
            "assignee",
            "resolution",
            "duplicate_check",
        }
    )

    title = TitleField(_("title"), max_length=200, validators=[refuse_blank])
    description = CleanTextField(_("description"), blank=True, validators=[MaxLengthValidator(MAX_TEXT)])
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.NEW)
    priority = models.CharField(
        _("priority"), max_length=10, choices=Priority.choices, default=Priority.NORMAL
    )
    category = models.ForeignKey(
        Category, models.PROTECT, verbose_name=_("category"), null=True, blank=True, related_name="tickets"
    )
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        verbose_name=_("reporter"),
        related_name="reported_tickets",
        db_index=False,  # the index with the date below
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        verbose_name=_("assignee"),
        null=True,
        blank=True,
        related_name="assigned_tickets",
        limit_choices_to={"is_staff": True},
        error_messages={"invalid": _("Tickets can only be assigned to staff.")},
    )
    source = models.CharField(_("source"), max_length=10, choices=Source.choices, default=Source.ADMIN)
    resolution = CleanTextField(
        _("resolution"),
        blank=True,
        validators=[MaxLengthValidator(MAX_TEXT)],
        help_text=_("How it was solved: the next person with this problem will read it."),
    )
    duplicate_of = models.ForeignKey(
        "self",
        models.PROTECT,
        verbose_name=_("duplicate of"),
        null=True,
        blank=True,
        editable=False,
        related_name="duplicates",
        db_index=False,  # the partial index below
    )
    duplicate_check = models.CharField(
        _("duplicate check"), max_length=12, choices=DuplicateCheck.choices, default=DuplicateCheck.NOT_NEEDED
    )
    created_at = models.DateTimeField(_("created"), default=clock.now, editable=False)
    updated_at = models.DateTimeField(_("updated"), default=clock.now, editable=False)
    resolved_at = models.DateTimeField(_("resolved at"), null=True, blank=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)

    # What a merge overwrites, kept so that it can be undone exactly.
    status_before_merge = models.CharField(max_length=10, blank=True, editable=False)
    resolved_at_before_merge = models.DateTimeField(null=True, editable=False)

    content_hash = models.GeneratedField(
        expression=Func(F("title"), F("description"), function="ticket_content_hash"),
        output_field=models.BinaryField(),
        db_persist=True,
    )
    identifiers = models.GeneratedField(
        expression=Func(F("title"), F("description"), function="ticket_identifiers"),
        output_field=ArrayField(models.TextField()),
        db_persist=True,
    )
    search_words = models.GeneratedField(
        expression=Func(F("title"), F("description"), function="ticket_search_words"),
        output_field=UnselectedSearchVectorField(),
        db_persist=True,
    )

    objects = TicketQuerySet.as_manager()

    class Meta:
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        constraints = [
            # Lets the embedding worker compare all hashes by an index-only merge join.
            models.UniqueConstraint(fields=["id"], include=["content_hash"], name="tickets_ticket_id_hash"),
            models.CheckConstraint(
                condition=Q(duplicate_of__isnull=True) | ~Q(duplicate_of=F("id")),
                name="tickets_not_its_own_duplicate",
            ),
        ]
        indexes = [
            GinIndex(fields=["identifiers"], name="tickets_identifiers"),
            GinIndex(fields=["search_words"], name="tickets_search_words"),
            models.Index(fields=["-created_at", "-id"], name="tickets_created"),
            models.Index(fields=["-updated_at"], name="tickets_updated"),
            models.Index(fields=["status", "-created_at"], name="tickets_status_created"),
            models.Index(fields=["reporter", "-created_at"], name="tickets_reporter_created"),
            models.Index(
                fields=["-created_at", "-id"],
                condition=Q(status__in=UNRESOLVED),
                name="tickets_unresolved_created",
            ),
            models.Index(
                fields=["assignee", "-created_at"],
                condition=Q(status__in=UNRESOLVED),
                name="tickets_unresolved_assignee",
            ),
            models.Index(
                fields=["priority", "-created_at"],
                condition=Q(status__in=UNRESOLVED),
                name="tickets_unresolved_priority",
            ),
            models.Index(
                fields=["duplicate_of"], condition=Q(duplicate_of__isnull=False), name="tickets_duplicate_of"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}"

    @property
    def is_resolved(self) -> bool:
        return self.status not in UNRESOLVED

    # -- changing ------------------------------------------------------------------------------------------

    def change(
        self, *, by: User | None, via: str, expected_version: int | None = None, **changes: Any
    ) -> list[TicketEvent]:
        """Change only the named fields of the row as it is now, and record each in the history.

        Returns the events, none if nothing differs. Raises `StaleTicket` if `expected_version` is given and
        somebody was faster, `ValidationError` if a value is wrong; then nothing is changed.
        """
        unknown = changes.keys() - self.CHANGEABLE
        if unknown:
            raise TypeError(f"not changeable: {', '.join(sorted(unknown))}")
        with transaction.atomic():
            current = self.locked()
            if expected_version is not None and current.version != expected_version:
                raise StaleTicket(current, expected_version)
            events = current._apply(changes, by, via)
        self._adopt(current)
        return events

    def locked(self) -> Ticket:
        """The row as it is now, locked until the end of the transaction. `no_key`: comments need not wait."""
        return Ticket.objects.select_for_update(no_key=True).get(pk=self.pk)

    def _apply(self, changes: dict[str, Any], by: User | None, via: str) -> list[TicketEvent]:
        before = {name: getattr(self, name) for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        self.check_fields(changes)
        changed = [name for name in changes if getattr(self, name) != before[name]]
        if not changed:
            return []
        if "status" in changed:
            self._status_changed(before["status"])
        self._save_changed(changed)
        return TicketEvent.objects.bulk_create(
            [TicketEvent.of_change(self, name, before[name], by, via) for name in changed]
        )

    def check_fields(self, names: Iterable[str]) -> None:
        """Clean and validate the named fields only: an old ticket may break a newer rule elsewhere."""
        self.clean_fields(exclude={field.name for field in self._meta.fields} - set(names))

    def _status_changed(self, before: str) -> None:
        if self.duplicate_of_id is not None:
            raise ValidationError(
                {
                    "status": gettext(
                        "#%(id)s is a duplicate of #%(target)s. Undo the merge to change its status."
                    )
                    % {"id": self.pk, "target": self.duplicate_of_id}
                }
            )
        if not self.is_resolved:
            self.resolved_at = None
        elif before in UNRESOLVED:
            self.resolved_at = clock.now()

    def _save_changed(self, changed: Iterable[str]) -> None:
        self.version += 1
        self.updated_at = clock.now()
        self.save(update_fields={*changed, "resolved_at", "version", "updated_at"})

    def _adopt(self, current: Ticket) -> None:
        """Take over the stored values, so that the object in the caller's hands is not stale."""
        for field in self._meta.concrete_fields:
            if field.generated:
                self.__dict__.pop(field.attname, None)  # read again when asked for
            else:
                setattr(self, field.attname, getattr(current, field.attname))

    # -- talking -------------------------------------------------------------------------------------------

    def add_comment(self, *, by: User, body: str, internal: bool, via: str) -> Comment:
        """Comment on this ticket; on a duplicate the comment goes to the ticket it stands for."""
        comment = Comment(ticket=self.chain_end(), author=by, body=body, internal=internal)
        comment.clean_fields()
        with transaction.atomic():
            comment.save()
            Ticket.objects.filter(pk=comment.ticket_id).update(updated_at=comment.created_at)
            TicketEvent.objects.create(
                ticket=comment.ticket,
                version=Subquery(Ticket.objects.filter(pk=comment.ticket_id).values("version")),
                kind=TicketEvent.Kind.COMMENTED,
                new="internal" if internal else "public",
                new_ref=comment.pk,
                actor=by,
                via=via,
            )
        return comment

    # -- merging -------------------------------------------------------------------------------------------

    def merge_into(self, target: Ticket, by: User | None, via: str = Via.ADMIN) -> None:
        """Close this ticket as a duplicate of `target`, or of the ticket that `target` stands for.

        Nothing is moved or copied: the target shows the comments and reporters of its whole chain. Raises
        `ValidationError` with a sentence for people if that is impossible.
        """
        with transaction.atomic():
            duplicate, end = self._lock_for_merge(target)
            duplicate.status_before_merge = duplicate.status
            duplicate.resolved_at_before_merge = duplicate.resolved_at
            duplicate.status = Ticket.Status.CLOSED
            duplicate.resolved_at = duplicate.resolved_at or clock.now()
            duplicate.duplicate_of = end
            duplicate._save_changed(duplicate._MERGE_FIELDS)
            TicketEvent.record_merge(duplicate, end, by, via)
        self._adopt(duplicate)

    def unmerge(self, by: User | None, via: str = Via.ADMIN) -> None:
        """Undo `merge_into()`: status and time of resolution are again exactly what they were."""
        with transaction.atomic():
            duplicate = self.locked()
            end = duplicate.duplicate_of
            if end is None:
                raise ValidationError(
                    gettext("#%(id)s is not a duplicate of another ticket.") % {"id": self.pk}
                )
            duplicate.status = duplicate.status_before_merge
            duplicate.resolved_at = duplicate.resolved_at_before_merge
            duplicate.status_before_merge, duplicate.resolved_at_before_merge = "", None
            duplicate.duplicate_of = None
            duplicate._save_changed(duplicate._MERGE_FIELDS)
            TicketEvent.record_unmerge(duplicate, end, by, via)
        self._adopt(duplicate)

    _MERGE_FIELDS = ("status", "duplicate_of", "status_before_merge", "resolved_at_before_merge")

    def merge_target(self, target: Ticket) -> Ticket:
        """The ticket that `merge_into(target)` would point to; the `ValidationError` it would raise."""
        end = target.chain_end()
        self._refuse_impossible_merge(self, target, end)
        return end

    def _lock_for_merge(self, target: Ticket) -> tuple[Ticket, Ticket]:
        """This ticket and the end of the target's chain, checked and locked.

        One merge at a time: with row locks alone, merges around a ring could wait for each other or close it.
        The rows are locked in the order of their ids.
        """
        _one_merge_at_a_time()
        try:
            end = target.chain_end()
            locked = Ticket.objects.select_for_update(no_key=True).order_by("pk").in_bulk([self.pk, end.pk])
            duplicate, end = locked[self.pk], locked[end.pk]
        except (Ticket.DoesNotExist, KeyError):
            raise ValidationError(gettext("One of the tickets has been deleted in the meantime.")) from None
        self._refuse_impossible_merge(duplicate, target, end)
        return duplicate, end

    @classmethod
    def lock_all(cls, ids: Collection[int], target: Ticket | None = None) -> None:
        """For a transaction that changes many tickets, or merges them into `target`: lock them, and what
        `target` stands for, before the first is changed.

        Locks are taken in one order everywhere, that of merging and then the rows by id. Taken one by one on
        the way, two such transactions could wait for each other.
        """
        rows = cls.objects.filter(pk__in=ids)
        if target is not None:
            _one_merge_at_a_time()
            rows = rows | cls.objects.filter(pk__in=[ticket.pk for ticket in _chain_up(target.pk)])
        list(rows.order_by("pk").select_for_update(no_key=True).values_list("pk"))

    @staticmethod
    def _refuse_impossible_merge(duplicate: Ticket, target: Ticket, end: Ticket) -> None:
        if duplicate.pk == target.pk:
            raise ValidationError(gettext("A ticket cannot be merged into itself."))
        if duplicate.duplicate_of_id is not None:
            raise ValidationError(
                gettext("#%(id)s is already a duplicate of #%(target)s. Undo that merge first.")
                % {"id": duplicate.pk, "target": duplicate.duplicate_of_id}
            )
        if duplicate.pk == end.pk:
            raise ValidationError(
                gettext(
                    "#%(target)s is itself a duplicate of #%(id)s. Undo that merge first,"
                    " or merge the other way round."
                )
                % {"id": duplicate.pk, "target": target.pk}
            )

    # -- linking -------------------------------------------------------------------------------------------

    def link_to(self, other: Ticket, by: User | None, via: str = Via.ADMIN) -> None:
        """Note that both have to do with each other, though each is a problem of its own. Twice is once."""
        if self.pk == other.pk:
            raise ValidationError(gettext("A ticket cannot be related to itself."))
        with transaction.atomic():
            _link, is_new = TicketLink.objects.get_or_create(
                **TicketLink.ends(self, other), defaults={"by": by}
            )
            if is_new:
                TicketEvent.record_link(self, other, TicketEvent.Kind.LINKED, by, via)

    def unlink_from(self, other: Ticket, by: User | None, via: str = Via.ADMIN) -> None:
        with transaction.atomic():
            deleted, _kinds = TicketLink.objects.filter(**TicketLink.ends(self, other)).delete()
            if deleted:
                TicketEvent.record_link(self, other, TicketEvent.Kind.UNLINKED, by, via)

    def related(self) -> TicketQuerySet:
        """The tickets it is linked to."""
        of_first = TicketLink.objects.filter(first=self).values("second")
        of_second = TicketLink.objects.filter(second=self).values("first")
        return Ticket.objects.filter(Q(pk__in=of_first) | Q(pk__in=of_second))

    # -- the chain of its merges ----------------------------------------------------------------------------

    def chain_end(self) -> Ticket:
        """The ticket that this one stands for after all merges; itself if it is no duplicate."""
        end_id = self._chain_end_id()
        return self if end_id == self.pk else Ticket.objects.get(pk=end_id)

    def _chain_end_id(self) -> int:
        for ticket in _chain_up(self.pk):
            if ticket.duplicate_of_id is None:
                return ticket.pk
        raise Ticket.DoesNotExist

    def whole_chain(self) -> TicketQuerySet:
        """All tickets for the same problem as this one: the end of the chain and all its duplicates."""
        chain = Ticket.objects.raw(
            """WITH RECURSIVE down(id) AS (
                   SELECT %s::bigint
                   UNION
                   SELECT t.id FROM tickets_ticket t JOIN down ON t.duplicate_of_id = down.id)
               SELECT id FROM down""",
            [self._chain_end_id()],
        )
        return Ticket.objects.filter(pk__in=[ticket.pk for ticket in chain])

    def thread(self) -> models.QuerySet[Comment]:
        """The comments of the whole chain, oldest first. Internal notes stay internal."""
        return Comment.objects.filter(ticket__in=self.whole_chain()).select_related("author")


def _chain_up(ticket_id: int) -> Iterable[Ticket]:
    """The ticket and what it is a duplicate of, up to the end of its chain; nothing if it is deleted."""
    return Ticket.objects.raw(
        """WITH RECURSIVE up(id, duplicate_of_id) AS (
               SELECT id, duplicate_of_id FROM tickets_ticket WHERE id = %s
               UNION
               SELECT t.id, t.duplicate_of_id FROM tickets_ticket t JOIN up ON t.id = up.duplicate_of_id)
           SELECT id, duplicate_of_id FROM up""",
        [ticket_id],
    )


def _one_merge_at_a_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [MERGE_LOCK])


class Comment(models.Model):
    ticket = models.ForeignKey(Ticket, models.CASCADE, verbose_name=_("ticket"), related_name="comments")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, verbose_name=_("author"), related_name="ticket_comments"
    )
    body = CleanTextField(_("comment"), validators=[refuse_blank, MaxLengthValidator(MAX_TEXT)])
    internal = models.BooleanField(
        _("internal"), default=False, help_text=_("For colleagues only, not for the reporter.")
    )
    created_at = models.DateTimeField(_("created"), default=clock.now, editable=False)

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return self.body[:60]


class TicketLink(models.Model):
    """Two tickets that have to do with each other, though each is a problem of its own. One row a pair."""

    first = models.ForeignKey(Ticket, models.CASCADE, related_name="+", verbose_name=_("ticket"))
    second = models.ForeignKey(Ticket, models.CASCADE, related_name="+", verbose_name=_("related ticket"))
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("created"), default=clock.now, editable=False)

    class Meta:
        verbose_name = _("related tickets")
        verbose_name_plural = _("related tickets")
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="tickets_link_pair"),
            models.CheckConstraint(condition=Q(first__lt=F("second")), name="tickets_link_in_order"),
        ]

    def __str__(self) -> str:
        return f"#{self.first_id} – #{self.second_id}"

    @staticmethod
    def ends(one: Ticket, other: Ticket) -> dict[str, int]:
        """The pair as it is stored."""
        first, second = sorted((one.pk, other.pk))
        return {"first_id": first, "second_id": second}


class TicketEvent(models.Model):
    """One line of a ticket's history: append-only."""

    class Kind(models.TextChoices):
        CREATED = "created", _("created")
        CHANGED = "changed", _("changed")
        COMMENTED = "commented", _("commented")
        MERGED = "merged", _("merged into")
        UNMERGED = "unmerged", _("merge undone")
        DUPLICATE_ADDED = "duplicate_added", _("duplicate added")
        DUPLICATE_REMOVED = "duplicate_removed", _("duplicate removed")
        LINKED = "linked", _("related to")
        UNLINKED = "unlinked", _("no longer related to")

    ticket = models.ForeignKey(Ticket, models.CASCADE, verbose_name=_("ticket"), related_name="events")
    version = models.PositiveIntegerField(help_text="Version of the ticket after the event.")
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices)
    field = models.CharField(_("field"), max_length=30, blank=True)
    # As text that stays readable when the row it names is gone; the id beside it for what the text names.
    old = models.TextField(_("before"), blank=True)
    new = models.TextField(_("after"), blank=True)
    old_ref = models.BigIntegerField(null=True, blank=True)
    new_ref = models.BigIntegerField(null=True, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        verbose_name=_("who"),
        null=True,
        blank=True,
        related_name="ticket_events",
    )
    via = models.CharField(_("via"), max_length=10, choices=Via.choices)
    created_at = models.DateTimeField(_("when"), default=clock.now, editable=False)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return f"#{self.ticket_id}: {self.get_kind_display()}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("Ticket history is append-only: events cannot be changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("Ticket history is append-only: events cannot be deleted.")

    @classmethod
    def of_change(cls, ticket: Ticket, field: str, old: Any, by: User | None, via: str) -> TicketEvent:
        new = getattr(ticket, field)
        return cls(
            ticket=ticket,
            version=ticket.version,
            kind=cls.Kind.CHANGED,
            field=field,
            old=readable(old),
            new=readable(new),
            old_ref=reference(old),
            new_ref=reference(new),
            actor=by,
            via=via,
        )

    @classmethod
    def record_merge(cls, duplicate: Ticket, end: Ticket, by: User | None, via: str) -> None:
        """On both sides."""
        common = {"actor": by, "via": via}
        cls.objects.bulk_create(
            [
                cls(ticket=duplicate, version=duplicate.version, kind=cls.Kind.MERGED, field="duplicate_of",
                    new=str(end), new_ref=end.pk, **common),
                cls(ticket=end, version=end.version, kind=cls.Kind.DUPLICATE_ADDED,
                    new=str(duplicate), new_ref=duplicate.pk, **common),
            ]
        )  # fmt: skip

    @classmethod
    def record_link(cls, one: Ticket, other: Ticket, kind: str, by: User | None, via: str) -> None:
        """On both sides."""
        cls.objects.bulk_create(
            [
                cls(
                    ticket=here,
                    version=here.version,
                    kind=kind,
                    new=str(there),
                    new_ref=there.pk,
                    actor=by,
                    via=via,
                )
                for here, there in ((one, other), (other, one))
            ]
        )

    @classmethod
    def record_unmerge(cls, duplicate: Ticket, end: Ticket, by: User | None, via: str) -> None:
        """On both sides."""
        common = {"actor": by, "via": via}
        cls.objects.bulk_create(
            [
                cls(ticket=duplicate, version=duplicate.version, kind=cls.Kind.UNMERGED, field="duplicate_of",
                    old=str(end), old_ref=end.pk, **common),
                cls(ticket=end, version=end.version, kind=cls.Kind.DUPLICATE_REMOVED,
                    old=str(duplicate), old_ref=duplicate.pk, **common),
            ]
        )  # fmt: skip


class ImportRun(models.Model):
    """How far the import of a file has come, so that it can be resumed and is not done twice."""

    file_hash = models.CharField(max_length=64, unique=True, editable=False)
    name = models.CharField(_("file"), max_length=200)
    options = models.JSONField(default=dict)
    rows = models.PositiveIntegerField(_("rows read"), default=0)
    created = models.PositiveIntegerField(_("tickets created"), default=0)
    rejected = models.PositiveIntegerField(_("rows rejected"), default=0)
    started_at = models.DateTimeField(_("started"), default=clock.now, editable=False)
    finished_at = models.DateTimeField(_("finished"), null=True, editable=False)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")

    def __str__(self) -> str:
        return self.name


class BulkRun(models.Model):
    """One change to many tickets: what was asked for, how far it has come, and what became of each ticket.

    The ids are those that the person saw when choosing them. `changes` holds plain values by field
    (`{"status": "open", "assignee": 7}`), `target` the ticket to merge into.
    """

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("person")
    )
    ids = ArrayField(models.BigIntegerField())
    changes = models.JSONField(default=dict)
    target = models.ForeignKey(
        Ticket, models.SET_NULL, null=True, related_name="+", verbose_name=_("merge into")
    )
    position = models.PositiveIntegerField(_("tickets gone through"), default=0)
    done = ArrayField(models.BigIntegerField(), default=list)
    unchanged = ArrayField(models.BigIntegerField(), default=list)
    refused = models.JSONField(default=list)  # [[id, sentence]]
    started_at = models.DateTimeField(_("started"), default=clock.now, editable=False)
    finished_at = models.DateTimeField(_("finished"), null=True, editable=False)

    class Meta:
        verbose_name = _("change to many tickets")
        verbose_name_plural = _("changes to many tickets")

    def __str__(self) -> str:
        return f"{self.pk}: {self.position}/{len(self.ids)}"


def readable(value: Any) -> str:
    """How the history writes a value: people by name, nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, User):
        return value.get_full_name() or value.get_username()
    return str(value)


def reference(value: Any) -> int | None:
    return value.pk if isinstance(value, models.Model) else None
