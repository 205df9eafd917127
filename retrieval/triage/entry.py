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

    def covers(self, text: str) -> bool:
        """Whether a ticket with this digest may be saved without another search."""
        return self.asked or self.text == text


def digest(title: str, description: str) -> str:
    return sha256(document(clean_text(title).strip(), clean_text(description).strip()).encode()).hexdigest()


class EntryForm(TicketForm):
    """The ticket form; a new ticket is held up once where others are likely the same."""

    duplicate_note = forms.CharField(required=False, widget=forms.HiddenInput)
    found: SearchOutcome | None = None  # of the search that saving takes, if it takes one
    suggested: SearchOutcome | None = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.instance.pk is None and not self.errors:
            self._heed_duplicates(cleaned)
        return cleaned

    def _heed_duplicates(self, cleaned: dict[str, Any]) -> None:
        note = Note.read(cleaned.get("duplicate_note", ""))
        if self.found is not None:
            text = digest(cleaned.get("title", ""), cleaned.get("description", ""))
            note = Note(text, self.found.outcome.value, asked=True)
            likely = [hit for hit in self.found.hits if hit.band == Band.LIKELY]
            if likely:
                self._ask(self.found, note, len(likely))
        if note is not None:
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

    def add_view(self, request: Any, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Searches before the transaction of the save begins: none is held while a provider thinks."""
        if request.method == "POST" and self.has_add_permission(request):
            request.found_before_saving = _search_due(request)
        return super().add_view(request, form_url, extra_context)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A class of this request's own, that knows what was found."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.found = getattr(request, "found_before_saving", None)
        return form


def suggested(outcome: SearchOutcome | None, note: str = "") -> dict[str, Any]:
    """The context of the suggestions beside the form."""
    return {"outcome": outcome, "cards": cards_of(outcome.hits) if outcome else [], "note": note}


def _typed(request: HttpRequest) -> tuple[str, str]:
    """Title and description as they would be saved."""
    names = ("title", "description")
    title, description = (clean_text(request.POST.get(name, "")).strip() for name in names)
    return title, description


def _search_due(request: HttpRequest) -> SearchOutcome | None:
    """What is like the ticket that is to be saved; None where the person has been shown that already."""
    title, description = _typed(request)
    note = Note.read(request.POST.get("duplicate_note", ""))
    if is_blank(title) or (note is not None and note.covers(digest(title, description))):
        return None
    return find_similar(document(title, description)[:LONGEST], user=request.user, limit=SHOWN)


def _suggest(site: EntryAdmin, request: HttpRequest) -> HttpResponse:
    """What is like the title and description typed so far. POST, because they may be long."""
    if not site.has_add_permission(request):
        return HttpResponse(status=403)
    title, description = _typed(request)
    text = document(title, description)[:LONGEST]
    if is_blank(text) or len(text) < FEWEST_CHARS:
        return render(request, "admin/retrieval/_suggestions.html", suggested(None))
    outcome = find_similar(text, user=request.user, limit=SHOWN)
    note = Note(digest(title, description), outcome.outcome.value)
    return render(request, "admin/retrieval/_suggestions.html", suggested(outcome, note.signed()))
