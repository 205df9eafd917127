"""The history of a ticket in words."""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from .labels import category_label
from .models import Ticket, TicketEvent, readable

SHORT = 80  # characters; longer texts are shown folded, with before and after
Kind = TicketEvent.Kind


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the history: who did what, and for long texts what was there before and after."""

    event: TicketEvent
    who: str
    what: str
    before: str = ""
    after: str = ""


def describe(event: TicketEvent) -> Line:
    who = readable(event.actor) or _("The system")
    if event.kind == Kind.CHANGED and _is_long(event):
        what = _("changed %(field)s") % {"field": field_label(event.field)}
        return Line(event, who, what, before=event.old, after=event.new)
    return Line(event, who, _SENTENCES[event.kind](event))


def field_label(name: str) -> str:
    label = Ticket._meta.get_field(name).verbose_name  # type: ignore[union-attr]
    return _("“%(label)s”") % {"label": label}


def value_label(field: str, value: str) -> str:
    """A stored value as people see it: "open" as the translated label, nothing as a dash."""
    if field == "category" and value:
        return category_label(value)
    choices = dict(getattr(Ticket._meta.get_field(field), "flatchoices", ()))
    label: str | Promise = choices.get(value, value)
    return str(label) or "–"


def _is_long(event: TicketEvent) -> bool:
    return max(len(event.old), len(event.new)) > SHORT or "\n" in event.old + event.new


def _changed(event: TicketEvent) -> str:
    label, new = field_label(event.field), value_label(event.field, event.new)
    if not event.old:
        return _("set %(field)s to %(new)s") % {"field": label, "new": new}
    if not event.new:
        return _("cleared %(field)s (was %(old)s)") % {
            "field": label,
            "old": value_label(event.field, event.old),
        }
    return _("changed %(field)s from %(old)s to %(new)s") % {
        "field": label,
        "old": value_label(event.field, event.old),
        "new": new,
    }


def _commented(event: TicketEvent) -> str:
    return _("added an internal note") if event.new == "internal" else pgettext("history", "commented")


def _named(text: str) -> str:
    return Truncator(text).chars(SHORT)


_SENTENCES: dict[str, Callable[[TicketEvent], str]] = {
    Kind.CREATED: lambda event: _("created the ticket"),
    Kind.CHANGED: _changed,
    Kind.COMMENTED: _commented,
    Kind.MERGED: lambda event: _("merged it as a duplicate into %(ticket)s") % {"ticket": _named(event.new)},
    Kind.UNMERGED: lambda event: _("undid the merge into %(ticket)s") % {"ticket": _named(event.old)},
    Kind.DUPLICATE_ADDED: lambda event: _("added the duplicate %(ticket)s") % {"ticket": _named(event.new)},
    Kind.DUPLICATE_REMOVED: lambda event: (
        _("removed the duplicate %(ticket)s") % {"ticket": _named(event.old)}
    ),
    Kind.LINKED: lambda event: _("marked it as related to %(ticket)s") % {"ticket": _named(event.new)},
    Kind.UNLINKED: lambda event: (
        _("marked it as no longer related to %(ticket)s") % {"ticket": _named(event.new)}
    ),
}
