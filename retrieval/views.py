"""The search page: the same search as the assistant's, without the assistant."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from retrieval.access import for_ticket_staff, person
from retrieval.highlight import terms_of
from retrieval.results import Hit, SearchOutcome
from retrieval.search import find_similar
from retrieval.sentences import coverage_sentence, matched_by
from tickets.language import detect_language
from tickets.models import Ticket
from tickets.text import clean_text

# About three pages of text; what comes after them no longer moves the vector.
MAX_QUERY_CHARACTERS = 8_000
HITS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class HitView:
    """A hit with what its card says beside the ticket itself."""

    hit: Hit
    language: str

    @property
    def matched(self) -> str:
        return matched_by(self.hit.matched, self.hit.identifiers, self.hit.similarity)


@never_cache
@require_GET
@for_ticket_staff
def search(request: HttpRequest) -> HttpResponse:
    """`/search/?q=…&closed=1`: similar tickets, in one of three outcomes. Without a question, the form."""
    asked = clean_text(request.GET.get("q", "")).strip()
    query = asked[:MAX_QUERY_CHARACTERS]
    include_closed = "closed" in request.GET
    context = {"section": "search", "query": query, "include_closed": include_closed, "cut": _cut(asked)}
    if query:
        statuses = (
            None if include_closed else [status for status in Ticket.Status if status != Ticket.Status.CLOSED]
        )
        outcome = find_similar(query, user=person(request), limit=HITS_SHOWN, statuses=statuses)
        context |= _found(query, outcome)
    return render(request, "retrieval/search.html", context)


def _cut(asked: str) -> str:
    if len(asked) <= MAX_QUERY_CHARACTERS:
        return ""
    return _("The question has %(length)s characters; the first %(limit)s were searched for.") % {
        "length": len(asked),
        "limit": MAX_QUERY_CHARACTERS,
    }


def _found(query: str, outcome: SearchOutcome) -> dict[str, object]:
    identifiers = {identifier for hit in outcome.hits for identifier in hit.identifiers}
    return {
        "outcome": outcome,
        "hits": [HitView(hit, _language(hit.ticket)) for hit in outcome.hits],
        "terms": terms_of(query, identifiers),
        "coverage": coverage_sentence(outcome.coverage),
    }


def _language(ticket: Ticket) -> str:
    return detect_language(f"{ticket.title}\n{ticket.description[:1000]}")
