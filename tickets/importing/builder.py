"""From a row to a ticket, by the rules of the models."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models.functions import Lower
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from ..models import Category, Ticket
from ..text import clean_title, is_blank
from .terms import FIELDS, ImportRefused, Options, Reject, Rejected, Row

UNREADABLE = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of bytes that do not decode
GERMAN_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:,?\s+(\d{1,2}:\d{2}(?::\d{2})?))?")

NEEDED = ("title", "reporter")  # a ticket without them is none
# What people head their columns with, where that is not the label of the field.
ALSO_CALLED = {
    "reporter": ("reported by", "melder", "gemeldet von"),
    "created_at": ("erstellt am",),
    "updated_at": ("geändert am",),
}


class Builder:
    """Makes tickets of rows, by the rules of the models, without a query for each row."""

    def __init__(self, options: Options, dry_run: bool) -> None:
        self.options = options
        self.dry_run = dry_run
        self.names = {name: column_names(name) for name in FIELDS}
        self.mapping: dict[str, str] = {}  # field → column; empty where each row has columns of its own
        self.zone = _zone(options.time_zone)
        self.people = _people()
        self.categories = dict(Category.objects.annotate(key=Lower("name")).values_list("key", "pk"))
        self.labels = {name: _labels(name) for name in ("status", "priority")}
        self.assignees: dict[int, list[str]] = {}
        unknown = [name for name in {**options.mapping, **options.constants} if name not in FIELDS]
        if unknown:
            names = {"unknown": ", ".join(unknown), "known": ", ".join(FIELDS)}
            raise ImportRefused(_("There is no field %(unknown)s. Fields are: %(known)s.") % names)

    def choose_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Decides which column fills which field: as told, otherwise by its name. Returns those left over."""
        if not columns:
            return ()
        self.mapping = self._mapping(columns)
        self._refuse_missing(columns)
        return tuple(column for column in columns if column and column not in self.mapping.values())

    def _mapping(self, columns: Iterable[str]) -> dict[str, str]:
        by_name = {column.lower(): column for column in columns}
        spelt = {
            name: next((by_name[known] for known in names if known in by_name), name)
            for name, names in self.names.items()
        }
        return {**spelt, **self.options.mapping}

    def _refuse_missing(self, columns: tuple[str, ...]) -> None:
        """One sentence for the file, instead of the same one for each of its rows."""
        missing = [column for column in self.options.mapping.values() if column not in columns]
        if missing:
            names = {"missing": ", ".join(missing), "columns": ", ".join(columns)}
            raise ImportRefused(
                _("The file has no column %(missing)s. Its columns are: %(columns)s.") % names
            )
        filled = {name for name in FIELDS if self.mapping[name] in columns} | self.options.constants.keys()
        empty = [str(_field(name).verbose_name) for name in NEEDED if name not in filled]
        if empty:
            names = {"fields": ", ".join(empty), "columns": ", ".join(columns)}
            raise ImportRefused(
                _("The file has no column for: %(fields)s. Its columns are: %(columns)s.") % names
            )

    def tickets(self, rows: list[Row], on_rejected: Reject) -> list[Ticket]:
        tickets = []
        for row in rows:
            try:
                tickets.append(self.ticket(row))
            except ValidationError as error:
                on_rejected(Rejected(row, _reason(error)))
        return tickets

    def ticket(self, row: Row) -> Ticket:
        """Raises `ValidationError` with a sentence for each wrong field."""
        if row.problem:
            raise ValidationError(row.problem)
        if any(map(UNREADABLE.search, row.cells.values())):
            raise ValidationError(_("bytes that are no text in the encoding of the file"))
        mapping = self.mapping or self._mapping(row.cells)
        values = {
            name: row.cells.get(column, "") or self.options.constants.get(name, "")
            for name, column in mapping.items()
        }
        ticket = Ticket(source=Ticket.Source.IMPORT)
        errors: dict[str, list[str]] = {}
        for name, fill in self._STEPS:
            try:
                fill(self, ticket, name, values[name])
            except ValidationError as error:
                errors[name] = error.messages
        self._check(ticket, errors)
        return ticket

    def _check(self, ticket: Ticket, errors: dict[str, list[str]]) -> None:
        try:
            ticket.check_fields({"title", "description", "resolution"} - errors.keys())
        except ValidationError as error:
            errors |= error.message_dict
        if errors:
            raise ValidationError(errors)

    # Each fills one field from the text of its cell, or raises `ValidationError`.

    def _text(self, ticket: Ticket, name: str, text: str) -> None:
        setattr(ticket, name, text)

    def _choice(self, ticket: Ticket, name: str, text: str) -> None:
        value = self.labels[name].get(clean_title(text).lower()) if text else _field(name).default
        if value is None:
            choices = ", ".join(str(label) for _value, label in _field(name).choices)
            named = {"value": clean_title(text)[:80], "choices": choices}
            raise ValidationError(_("“%(value)s” is none of: %(choices)s.") % named)
        setattr(ticket, name, value)

    def _category(self, ticket: Ticket, name: str, text: str) -> None:
        title = clean_title(text)
        if not title:
            return
        if title.lower() not in self.categories:
            self.categories[title.lower()] = self._new_category(title)
        ticket.category_id = self.categories[title.lower()]

    def _new_category(self, name: str) -> int:
        if not self.options.create_categories:
            raise ValidationError(_("There is no category “%(name)s”.") % {"name": name[:80]})
        category = Category(name=name)
        category.full_clean()
        if self.dry_run:
            return 0
        category.save()
        return category.pk

    def _reporter(self, ticket: Ticket, name: str, text: str) -> None:
        if is_blank(text):
            raise ValidationError(_("Nobody is named."))
        ticket.reporter_id = self._person(text)

    def _assignee(self, ticket: Ticket, name: str, text: str) -> None:
        if is_blank(text):
            return
        pk = self._person(text)
        if pk not in self.assignees:
            self.assignees[pk] = _refusal("assignee", pk, ticket)
        if self.assignees[pk]:
            raise ValidationError(self.assignees[pk])
        ticket.assignee_id = pk

    def _person(self, text: str) -> int:
        known = self.people.get(clean_title(text).lower(), ())
        if len(known) == 1:
            return known[0]
        name = {"name": clean_title(text)[:80]}
        raise ValidationError(
            _("“%(name)s” may be several people.") % name
            if known
            else _("There is nobody “%(name)s”.") % name
        )

    def _created(self, ticket: Ticket, name: str, text: str) -> None:
        ticket.created_at = ticket.updated_at = self._moment(text) or timezone.now()

    def _updated(self, ticket: Ticket, name: str, text: str) -> None:
        ticket.updated_at = max(self._moment(text) or ticket.created_at, ticket.created_at)

    def _resolved(self, ticket: Ticket, name: str, text: str) -> None:
        moment = self._moment(text)
        if ticket.is_resolved:
            ticket.resolved_at = max(moment or ticket.updated_at, ticket.created_at)

    def _moment(self, text: str) -> datetime | None:
        text = clean_title(text)
        if not text:
            return None
        moment = parse_moment(text, self.zone)
        if moment > timezone.now() + timedelta(minutes=5):
            raise ValidationError(_("“%(value)s” is in the future.") % {"value": text[:80]})
        return moment

    _STEPS: tuple[tuple[str, Callable[[Builder, Ticket, str, str], None]], ...] = (
        ("title", _text),
        ("description", _text),
        ("resolution", _text),
        ("status", _choice),
        ("priority", _choice),
        ("category", _category),
        ("reporter", _reporter),
        ("assignee", _assignee),
        ("created_at", _created),
        ("updated_at", _updated),
        ("resolved_at", _resolved),
    )


def parse_moment(text: str, zone: tzinfo) -> datetime:
    """ISO 8601 with or without time and zone, or as Germans write it: 24.12.2025 18:30. Aware, or
    `ValidationError`.
    """
    try:
        german = GERMAN_DATE.fullmatch(text)
        if german:
            day = date(int(german[3]), int(german[2]), int(german[1]))
            moment = datetime.combine(day, time.fromisoformat((german[4] or "0:00").zfill(5)))
        else:
            moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(timezone.get_default_timezone())
    except (ValueError, OverflowError) as error:
        message = _("“%(value)s” is no time; write it as 2025-12-24T18:30 or 24.12.2025 18:30.")
        raise ValidationError(message % {"value": text[:80]}) from error


def _field(name: str) -> Any:
    return Ticket._meta.get_field(name)


def _zone(name: str) -> tzinfo:
    try:
        return zoneinfo.ZoneInfo(name) if name else timezone.get_default_timezone()
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ImportRefused(_("There is no time zone %(name)s.") % {"name": name}) from error


def _people() -> dict[str, tuple[int, ...]]:
    """Ids by user name and by address, in lower case. A user name counts before an address."""
    people: dict[str, tuple[int, ...]] = {}
    for pk, email in User.objects.exclude(email="").values_list("pk", Lower("email")).iterator():
        people[email] = (*people.get(email, ()), pk)
    names: dict[str, tuple[int, ...]] = {}
    for pk, name in User.objects.values_list("pk", Lower("username")).iterator():
        names[name] = (*names.get(name, ()), pk)
    return people | names


def column_names(name: str) -> list[str]:
    """What a column of this field may be headed, in lower case: its name, or its label in any language of the
    site."""
    names = [name, name.removesuffix("_at"), name.replace("_", " ")]
    for code, _language in settings.LANGUAGES:
        with translation.override(code):
            names.append(str(_field(name).verbose_name).lower())
    return list(dict.fromkeys([*names, *ALSO_CALLED.get(name, ())]))


def _labels(name: str) -> dict[str, str]:
    """How people write the choices of a field: as stored, or by their labels in any language of the site."""
    labels: dict[str, str] = {}
    for code, _language in settings.LANGUAGES:
        with translation.override(code):
            choices: Any = _field(name).choices
            labels |= {str(label).lower(): value for value, label in choices}
    return labels | {value: value for value in list(labels.values())}


def _refusal(name: str, pk: int, ticket: Ticket) -> list[str]:
    """What the model has against this person in this field."""
    try:
        _field(name).clean(pk, ticket)
    except ValidationError as error:
        return error.messages
    return []


def _reason(error: ValidationError) -> str:
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return "; ".join(f"{name}: {' '.join(messages)}" for name, messages in error.message_dict.items())
