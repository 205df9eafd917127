"""Reusable questions about tickets. `visible_to()` is the one gate for reading."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db import models
from django.db.models import F, Func, OuterRef, Q, Subquery, Value

from .permissions import Person, may_view
from .text import clean_text

if TYPE_CHECKING:
    from .models import Ticket, TicketEvent  # noqa: F401

UNRESOLVED = ("new", "open", "pending")


class TicketQuerySet(models.QuerySet["Ticket"]):
    def visible_to(self, user: Person) -> TicketQuerySet:
        return self.all() if may_view(user) else self.none()

    def unresolved(self) -> TicketQuerySet:
        """New, open or pending: somebody still has to do something."""
        return self.filter(status__in=UNRESOLVED)

    def waiting_for(self, user: Person) -> TicketQuerySet:
        """Assigned to `user`, and it is their turn: somebody else has commented last, or nobody has and the
        ticket is not pending."""
        comments = self.model._meta.get_field("comments").related_model.objects  # type: ignore[union-attr]
        latest = comments.filter(ticket=OuterRef("pk")).order_by("-created_at", "-pk").values("author")[:1]
        mine = self.unresolved().filter(assignee=user.pk).annotate(last_author=Subquery(latest))
        untouched = Q(last_author=None) & ~Q(status="pending")
        return mine.filter(untouched | Q(last_author__isnull=False) & ~Q(last_author=user.pk))

    def matching_words(self, query: str) -> TicketQuerySet:
        """Tickets with the words of `query` in title or description, best first.

        `query` is what people type into a search field: words, "a phrase", -without, or. Any input is valid.
        """
        words = _words(query)
        ranked = self.annotate(word_rank=SearchRank(F("search_words"), words))
        return ranked.filter(search_words=words).order_by("-word_rank", "-pk")

    def search(self, query: str) -> TicketQuerySet:
        """What the search field of the list finds: #123 that ticket, otherwise words or identifiers."""
        number = re.fullmatch(r"#?(\d{1,18})", query.strip())
        if number and "#" in query:
            return self.filter(pk=int(number[1]))
        found = Q(search_words=_words(query)) | Q(identifiers__overlap=_identifiers_in(query))
        return self.filter(found | Q(pk=int(number[1])) if number else found)


def _words(query: str) -> SearchQuery:
    return SearchQuery(clean_text(query), config="simple", search_type="websearch")


def _identifiers_in(query: str) -> Func:
    return Func(
        Value(clean_text(query)),
        Value(""),
        function="ticket_identifiers",
        output_field=ArrayField(models.TextField()),
    )


class AppendOnlyQuerySet(models.QuerySet["TicketEvent"]):
    """History is written once. It goes only together with its ticket."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("Ticket history is append-only: events cannot be changed.")

    def delete(self) -> NoReturn:
        raise TypeError("Ticket history is append-only: events cannot be deleted.")
