"""Forms of the ticket admin."""

import re
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .fields import CleanTextFormField
from .history import describe, value_label
from .labels import group_label
from .models import Ticket, TicketEvent, readable
from .text import within_quotes


class TicketForm(forms.ModelForm):
    """A ticket and, for an existing one, a comment. Remembers which version its reader has seen."""

    seen_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    comment = CleanTextFormField(
        label=_("Comment"), required=False, widget=AdminTextareaWidget(attrs={"rows": 4, "dir": "auto"})
    )
    comment_internal = forms.BooleanField(label=_("Internal note, not for the reporter"), required=False)

    class Meta:
        model = Ticket
        fields = ("title",)  # the admin chooses

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["seen_version"].initial = self.instance.version

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance.pk is not None:
            self._refuse_stale(cleaned.get("seen_version"))
        return cleaned

    def _refuse_stale(self, seen: int | None) -> None:
        """The row stays locked until the request is done: what is checked here is what gets saved."""
        if seen is None:
            raise ValidationError(gettext("The form was incomplete. Please load the page again."))
        current = self.instance.locked()
        if current.version == seen:
            return
        events = list(current.events.select_related("actor").filter(version__gt=seen))
        self._show_current_values(current, events)
        raise ValidationError(
            [
                gettext(
                    "Nothing has been saved yet: the ticket has been changed in the meantime. "
                    "Your entries are kept, everything else shows the new state. Save again if it is right."
                ),
                *(f"{line.who}: {line.what}" for line in map(describe, events)),
            ]
        )

    def _show_current_values(self, current: Ticket, events: list[TicketEvent]) -> None:
        renewed = {self.add_prefix("seen_version"): current.version}
        first_changes = {
            event.field: event for event in reversed(events) if event.kind == TicketEvent.Kind.CHANGED
        }
        for name in first_changes.keys() & self.fields.keys():
            now = stored_value(current, name)
            if self._is_own_entry(name, first_changes[name], now):
                self._warn_of_conflict(name, [event for event in events if event.field == name][-1])
            else:
                renewed[self.add_prefix(name)] = now
        self.data = {**self.data.dict(), **renewed}  # type: ignore[attr-defined]

    def _is_own_entry(self, name: str, first_change: TicketEvent, now: Any) -> bool:
        """Whether the reader of this form has entered something: neither the old value nor the new one."""
        field = Ticket._meta.get_field(name)
        before = first_change.old_ref if field.is_relation else first_change.old
        entry = self.cleaned_data.get(name)
        entry = getattr(entry, "pk", entry)
        return name in self.errors or entry not in (before, now)

    def _warn_of_conflict(self, name: str, event: TicketEvent) -> None:
        warning = gettext(
            "Somebody else has set this to “%(value)s”. If you save again, your entry replaces it."
        )
        value = Truncator(value_label(name, event.new)).chars(200)
        self.add_error(name, warning % {"value": within_quotes(value)})


def stored_value(ticket: Ticket, name: str) -> Any:
    return getattr(ticket, Ticket._meta.get_field(name).attname)  # type: ignore[union-attr]


class PersonChoiceField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return readable(obj)


class CategoryChoiceField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.label)


class GroupsChoiceField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return group_label(obj.name)


class MergeForm(forms.Form):
    """Which ticket to merge into, as people write it: 123 or #123."""

    target = forms.CharField(label=_("Number of the other ticket"), max_length=20)

    def __init__(self, ticket: Ticket, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ticket = ticket

    def clean_target(self) -> Ticket:
        """The named ticket; it may itself be a duplicate."""
        target = named_ticket(self.cleaned_data["target"])
        self.ticket.merge_target(target)
        return target


def named_ticket(text: str) -> Ticket:
    """The ticket with the number that `text` is, as people write it. Raises `ValidationError`."""
    number = re.fullmatch(r"#?(\d{1,18})", text.strip())
    ticket = Ticket.objects.filter(pk=int(number[1])).first() if number else None
    if ticket is None:
        raise ValidationError(gettext("There is no ticket with this number."))
    return ticket
