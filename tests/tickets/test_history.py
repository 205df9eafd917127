from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import translation

from tests.factories import TicketFactory
from tickets.history import describe
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


def sentences(ticket: Ticket) -> list[str]:
    return [f"{line.who} {line.what}" for line in map(describe, ticket.events.order_by("pk"))]


def test_tells_a_life_in_words(alice: User) -> None:
    ticket, target = TicketFactory(reporter=alice), TicketFactory(title="Target")
    ticket.change(by=alice, via="admin", status="open")
    ticket.change(by=alice, via="admin", assignee=alice)
    ticket.change(by=alice, via="admin", assignee=None)
    ticket.add_comment(by=alice, body="a", internal=False, via="admin")
    ticket.add_comment(by=alice, body="b", internal=True, via="admin")
    ticket.merge_into(target, by=alice)
    ticket.unmerge(by=None, via="system")
    assert sentences(ticket) == [
        "Alice Adams created the ticket",
        "Alice Adams changed “status” from new to open",
        "Alice Adams set “assignee” to Alice Adams",
        "Alice Adams cleared “assignee” (was Alice Adams)",
        "Alice Adams commented",
        "Alice Adams added an internal note",
        f"Alice Adams merged it as a duplicate into #{target.pk} Target",
        f"The system undid the merge into #{target.pk} Target",
    ]
    assert [line.what for line in map(describe, target.events.order_by("-pk")[:2])] == [
        f"removed the duplicate {ticket}",
        f"added the duplicate {ticket}",
    ]


def test_every_kind_has_its_words(alice: User) -> None:
    from tickets.history import _SENTENCES
    from tickets.models import TicketEvent

    assert set(_SENTENCES) == set(TicketEvent.Kind)


@pytest.mark.parametrize("new", ["x" * 81, "two\nlines"])
def test_long_texts_are_told_apart_from_the_sentence(alice: User, new: str) -> None:
    (event,) = TicketFactory(description="short").change(by=alice, via="api", description=new)
    line = describe(event)
    assert (line.what, line.before, line.after) == ("changed “description”", "short", new)


def test_values_follow_the_language_of_the_reader(alice: User, monkeypatch: Any) -> None:
    (event,) = TicketFactory().change(by=alice, via="api", priority="urgent")
    with translation.override("en"):
        assert "from normal to urgent" in describe(event).what
