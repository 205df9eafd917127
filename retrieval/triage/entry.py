"""Likely duplicates beside the form of a new ticket, and once when it is saved. They never stand in the way:
saving a second time always goes through, and a search that fails fails nothing.

What a search has said travels with the form as a signed note. A note about exactly the text that is saved
makes a second search unnecessary, so that the ordinary save makes no call to a provider.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from retrieval.documents import document
from retrieval.results import Band, Outcome, SearchOutcome
from retrieval.search import find_similar
from tickets.forms import TicketForm
from tickets.models import Ticket
from tickets.permissions import Person
from tickets.text import clean_text, is_blank

from .base import TriageAdmin
from .cards import cards_of

SHOWN = 5
FEWEST_CHARS = 10  # a shorter title means nothing yet
LONGEST = 20_000
SALT = "ticket-entry"
CHECKS = {
    Outcome.FOUND: Ticket.DuplicateCheck.SEARCHED,
    Outcome.NOTHING: Ticket.DuplicateCheck.SEARCHED,
    Outcome.UNAVAILABLE: Ticket.DuplicateCheck.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Note:
    """What was searched for (a digest of the text), with which outcome, and whether the person was asked."""

    text: str
    outcome: str
    asked: bool = False

    def signed(self) -> str:
        return signing.dumps(asdict(self), salt=SALT)

    @classmethod
    def read(cls, value: str) -> Note | None:
        try:
            return cls(**signing.loads(value, salt=SALT, max_age=86_400))
        except (signing.BadSignature, TypeError):
            return None


def digest(title: str, description: str) -> str:
    return sha256(document(clean_text(title).strip(), clean_text(description).strip()).encode()).hexdigest()


class EntryForm(TicketForm):
    """The ticket form; a new ticket is held up once where others are likely the same."""

    duplicate_note = forms.CharField(required=False, widget=forms.HiddenInput)
    person: Person
    suggested: SearchOutcome | None = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.instance.pk is None and not self.errors:
            self._look_for_duplicates(cleaned)
        return cleaned

    def _look_for_duplicates(self, cleaned: dict[str, Any]) -> None:
        title, description = cleaned.get("title", ""), cleaned.get("description", "")
        text = digest(title, description)
        note = Note.read(cleaned.get("duplicate_note", ""))
        if note is None or not (note.asked or note.text == text):
            found = find_similar(document(title, description)[:LONGEST], user=self.person, limit=SHOWN)
            note = Note(text, found.outcome.value, asked=True)
            likely = [hit for hit in found.hits if hit.band == Band.LIKELY]
            if likely:
                self._ask(found, note, len(likely))
        self.instance.duplicate_check = CHECKS[Outcome(note.outcome)]

    def _ask(self, found: SearchOutcome, note: Note, number: int) -> None:
        self.suggested = found
        self.data = {**self.data.dict(), self.add_prefix("duplicate_note"): note.signed()}  # type: ignore[attr-defined]
        question = ngettext(
            "Nothing has been saved yet: %(n)d ticket looks like the same problem. If yours is another one, "
            "save again.",
            "Nothing has been saved yet: %(n)d tickets look like the same problem. If yours is another one, "
            "save again.",
            number,
        )
        raise ValidationError(question % {"n": number}, code="duplicates")


class EntryAdmin(TriageAdmin):
    form = EntryForm

    def get_urls(self) -> list[URLPattern]:
        return [
            self.own_url("add/similar/", require_POST(self.suggest_view), "tickets_ticket_suggest"),
            *super().get_urls(),
        ]

    def suggest_view(self, request: HttpRequest) -> HttpResponse:
        return _suggest(self, request)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A class of this request's own, that knows who asks."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.person = request.user
        return form


def suggested(outcome: SearchOutcome | None, note: str = "") -> dict[str, Any]:
    """The context of the suggestions beside the form."""
    return {"outcome": outcome, "cards": cards_of(outcome.hits) if outcome else [], "note": note}


def _suggest(site: EntryAdmin, request: HttpRequest) -> HttpResponse:
    """What is like the title and description typed so far. POST, because they may be long."""
    if not site.has_add_permission(request):
        return HttpResponse(status=403)
    title = clean_text(request.POST.get("title", "")).strip()
    description = clean_text(request.POST.get("description", "")).strip()
    text = document(title, description)[:LONGEST]
    if is_blank(text) or len(text) < FEWEST_CHARS:
        return render(request, "admin/retrieval/_suggestions.html", suggested(None))
    outcome = find_similar(text, user=request.user, limit=SHOWN)
    note = Note(digest(title, description), outcome.outcome.value)
    return render(request, "admin/retrieval/_suggestions.html", suggested(outcome, note.signed()))
