from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from tests.factories import CategoryFactory, TicketFactory
from tickets.models import Category, Ticket
from tickets.services import create_ticket, find_category

pytestmark = pytest.mark.django_db


def create(reporter: User, **given: Any) -> Ticket:
    values: dict[str, Any] = {"title": "Printer", "description": "", "source": "chat"}
    return create_ticket(reporter=reporter, **(values | given))


def test_creates_with_the_first_line_of_history(alice: User, charlie: User) -> None:
    ticket = create(charlie, by=alice, source="api", priority="high")
    event = ticket.events.get()
    assert (event.kind, event.actor, event.via, event.version) == ("created", alice, "api", 1)
    assert event.created_at == ticket.created_at == ticket.updated_at
    assert (ticket.status, ticket.priority, ticket.version) == ("new", "high", 1)


def test_the_reporter_did_it_unless_told_otherwise(charlie: User) -> None:
    assert create(charlie).events.get().actor == charlie


@pytest.mark.parametrize("title", ["", "   ", "\n\t", "\u200b", "\0", "x" * 201])
def test_refuses_a_title_that_nobody_can_read(charlie: User, title: str) -> None:
    with pytest.raises(ValidationError) as caught:
        create(charlie, title=title)
    (sentence,) = caught.value.message_dict["title"]
    assert sentence.endswith(".") or "201" in sentence
    assert not Ticket.objects.exists()


def test_a_blank_title_is_refused_with_a_sentence(charlie: User) -> None:
    with pytest.raises(ValidationError, match="only white space"):
        create(charlie, title="\u200b \u200b")


@pytest.mark.parametrize(
    ("title", "description"),
    [
        ("🖨️🔥", "😀" * 1000),
        ("الطابعة لا تعمل", "\u202bשלום\u202c"),
        ("x" * 200, "Zeile\n" * 20_000),
        ("long", "a" * 100_000),
        ("wide", "𝒜b-c " * 20_000),
        ("words", " ".join(f"w{n}" for n in range(20_000))),
    ],
    ids=["emoji", "right to left", "lines", "one long word", "wide letters", "many words"],
)
def test_texts_of_all_kinds_are_stored_whole(charlie: User, title: str, description: str) -> None:
    ticket = create(charlie, title=title, description=description)
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.title, stored.description) == (title, description)


def test_what_cannot_be_stored_is_cleaned(charlie: User) -> None:
    ticket = create(charlie, title="  VPN\0 \n broken ", description="a\0b\ud800\r\n")
    stored = Ticket.objects.get(pk=ticket.pk)
    assert (stored.title, stored.description) == ("VPN broken", "ab\ufffd\n")
    assert (ticket.title, ticket.description) == (stored.title, stored.description)


def test_a_text_beyond_all_measure_is_refused(charlie: User) -> None:
    with pytest.raises(ValidationError, match="1000000 characters"):
        create(charlie, description="x" * 1_000_001)


def test_wrong_choices_are_refused(charlie: User) -> None:
    with pytest.raises(ValidationError) as caught:
        create(charlie, priority="gigantic", source="fax")
    assert set(caught.value.message_dict) == {"priority", "source"}


def test_only_staff_is_assigned(alice: User, charlie: User) -> None:
    assert create(charlie, assignee=alice).assignee == alice
    with pytest.raises(ValidationError, match="only be assigned to staff"):
        create(charlie, assignee=charlie)


def test_a_refused_ticket_leaves_nothing(charlie: User) -> None:
    with pytest.raises(ValidationError):
        create(charlie, title=" ")
    assert not Ticket.objects.exists()


def test_finds_a_category_in_any_case(alice: User) -> None:
    printing = CategoryFactory(name="Printing")
    assert find_category(" PRINTING ") == printing


def test_an_unknown_category_is_answered_with_the_known_ones(alice: User) -> None:
    CategoryFactory(name="Printing")
    with pytest.raises(ValidationError, match=r'no category "Fax".*Printing'):
        find_category("Fax")
    assert Category.objects.count() == 1


def test_creating_costs_few_queries(django_assert_num_queries: object, charlie: User) -> None:
    with django_assert_num_queries(5):  # type: ignore[operator]  # reporter, savepoint, ticket, event, savepoint
        create(charlie)


def test_the_factory_gives_a_ticket_with_history() -> None:
    assert TicketFactory(status="resolved").events.count() == 1
