import hashlib

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.db.models import ProtectedError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import CategoryFactory, CommentFactory, TicketFactory
from tickets.models import Category, Comment, Ticket, TicketEvent

pytestmark = pytest.mark.django_db
STORABLE = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=400)


def content_hash(title: str, description: str) -> bytes:
    return hashlib.sha256(f"{title}\n{description}".encode()).digest()


def test_the_hash_covers_title_and_description() -> None:
    ticket = TicketFactory(title="Drücker", description="Zeile\n🖨️")
    assert bytes(Ticket.objects.get().content_hash) == content_hash("Drücker", "Zeile\n🖨️")
    Ticket.objects.filter(pk=ticket.pk).update(description="anders")
    assert bytes(Ticket.objects.get().content_hash) == content_hash("Drücker", "anders")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(STORABLE, STORABLE)
def test_generated_columns_take_every_text(db: None, title: str, description: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ticket_content_hash(t, d), ticket_identifiers(t, d), ticket_search_words(t, d)"
            " FROM (VALUES (%s::text, %s::text)) AS ticket (t, d)",
            [title, description],
        )
        found, identifiers, words = cursor.fetchone()
    assert bytes(found) == content_hash(title, description)
    assert all(identifiers)
    assert isinstance(words, str)


def test_the_functions_work_without_a_search_path() -> None:
    """As when a dump is restored, which computes generated columns anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = ''")
        cursor.execute(
            "SELECT public.ticket_identifiers('Code 0x80070005', ''), public.ticket_search_words('a', 'b'),"
            " public.ticket_content_hash('a', 'b')"
        )
        assert cursor.fetchone()[0] == ["0x80070005"]


def test_identifiers_follow_the_text(alice: User) -> None:
    ticket = TicketFactory(title="NB-10234 fails with 0x0000011B")
    assert {"nb10234", "0x0000011b"} <= set(Ticket.objects.get().identifiers)
    ticket.change(by=alice, via="admin", title="srv-mail-01 is down")
    assert "srvmail01" in ticket.identifiers
    assert "nb10234" not in ticket.identifiers


def test_full_text_vectors_are_never_fetched(django_assert_num_queries: object) -> None:
    TicketFactory(description="words " * 1000)
    CommentFactory(ticket=Ticket.objects.get())
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert Comment.objects.select_related("ticket").get().ticket.search_words is None
    assert "NULL" in str(Ticket.objects.all().query)


def test_history_cannot_be_changed() -> None:
    event = TicketFactory().events.get()
    event.new = "forged"
    with pytest.raises(TypeError, match="append-only"):
        event.save()
    with pytest.raises(TypeError, match="append-only"):
        event.delete()
    with pytest.raises(TypeError, match="append-only"):
        TicketEvent.objects.all().delete()
    with pytest.raises(TypeError, match="append-only"):
        TicketEvent.objects.update(new="forged")
    with (
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE tickets_ticketevent SET new = 'forged'")
    assert TicketEvent.objects.get().new != "forged"


def test_history_goes_with_its_ticket() -> None:
    CommentFactory().ticket.delete()
    assert not TicketEvent.objects.exists()
    assert not Comment.objects.exists()


def test_who_appears_in_a_history_stays(charlie: User) -> None:
    TicketFactory(reporter=charlie)
    with pytest.raises(ProtectedError):
        charlie.delete()


def test_a_ticket_is_not_its_own_duplicate() -> None:
    ticket = TicketFactory()
    with pytest.raises(IntegrityError), transaction.atomic():
        Ticket.objects.update(duplicate_of=ticket)


def test_categories_are_unique_in_any_case() -> None:
    CategoryFactory(name="Printing")
    with pytest.raises(IntegrityError), transaction.atomic():
        CategoryFactory(name="PRINTING")
    with pytest.raises(ValidationError, match="already a category"):
        Category(name="printing").full_clean()


def test_texts_are_cleaned_where_no_form_is_involved(charlie: User) -> None:
    Ticket.objects.bulk_create([Ticket(title="a\0", description="\ud800", reporter=charlie)])
    Ticket.objects.update(resolution="b\0\udc00")
    ticket = Ticket.objects.get()
    assert (ticket.title, ticket.description, ticket.resolution) == ("a", "\ufffd", "b\ufffd")


def test_a_comment_is_recorded_and_counts_as_activity(alice: User) -> None:
    ticket = TicketFactory()
    comment = ticket.add_comment(by=alice, body="Try again\0", internal=True, via="admin")
    event = ticket.events.latest("pk")
    assert (event.kind, event.new, event.new_ref, event.actor, event.via) == (
        "commented", "internal", comment.pk, alice, "admin",
    )  # fmt: skip
    assert Comment.objects.get().body == "Try again"
    assert Ticket.objects.get().updated_at == comment.created_at
    assert Ticket.objects.get().version == 1


def test_a_comment_is_placed_behind_the_changes_it_follows(alice: User) -> None:
    ticket = TicketFactory()
    Ticket.objects.get().change(by=alice, via="api", title="New")
    ticket.add_comment(by=alice, body="By somebody who has not seen the change", internal=False, via="api")
    assert list(ticket.events.values_list("kind", "version")) == [
        ("created", 1),
        ("changed", 2),
        ("commented", 2),
    ]


@pytest.mark.parametrize("body", ["", "  ", "\n", "\u200b"])
def test_an_empty_comment_is_refused(alice: User, body: str) -> None:
    with pytest.raises(ValidationError):
        TicketFactory().add_comment(by=alice, body=body, internal=False, via="chat")
    assert not Comment.objects.exists()
