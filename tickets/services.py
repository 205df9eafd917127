"""Writes that span several models."""

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from .models import Category, Ticket, TicketEvent
from .text import clean_title


def create_ticket(
    *,
    reporter: User,
    title: str,
    description: str,
    source: str,
    priority: str = Ticket.Priority.NORMAL,
    category: Category | None = None,
    assignee: User | None = None,
    duplicate_check: str = Ticket.DuplicateCheck.NOT_NEEDED,
    by: User | None = None,
) -> Ticket:
    """Create a ticket and the first line of its history. `by` is who did it, if not the reporter.

    Makes no network call. Raises `ValidationError` with a sentence for each wrong field.
    """
    ticket = Ticket(
        reporter=reporter,
        title=title,
        description=description,
        source=source,
        priority=priority,
        category=category,
        assignee=assignee,
        duplicate_check=duplicate_check,
    )
    ticket.updated_at = ticket.created_at
    ticket.check_fields(Ticket.CHANGEABLE | {"source"})
    with transaction.atomic():
        ticket.save(force_insert=True)
        TicketEvent.objects.create(
            ticket=ticket,
            version=ticket.version,
            kind=TicketEvent.Kind.CREATED,
            new=ticket.title,
            actor=by or reporter,
            via=source,
            created_at=ticket.created_at,
        )
    return ticket


def find_category(name: str) -> Category:
    """The category of that name, in any case. Raises `ValidationError` naming what there is."""
    category = Category.objects.filter(name__iexact=clean_title(name)).first()
    if category is None:
        raise ValidationError(_unknown_category(name), "unknown_category")
    return category


def _unknown_category(name: str) -> str:
    known = Category.objects.values_list("name", flat=True)
    return _('There is no category "%(name)s". Categories are: %(known)s.') % {
        "name": clean_title(name),
        "known": ", ".join(known) or "–",
    }
