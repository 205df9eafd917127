"""The ticket admin: each page works, is refused without rights, and loses nothing when two people save."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets.admin import TicketAdmin
from tickets.models import Category, Comment, Ticket
from tickets.paginator import BoundedPaginator

pytestmark = pytest.mark.django_db
LIST = "/admin/tickets/ticket/"


def page(ticket: Ticket, name: str = "change") -> str:
    return f"/admin/tickets/ticket/{ticket.pk}/{name}/"


def entries(ticket: Ticket, **changes: Any) -> dict[str, Any]:
    """What the browser sends when the form of `ticket`, as it is in memory, is saved with `changes`."""
    return {
        "seen_version": ticket.version,
        "title": ticket.title,
        "description": ticket.description,
        "reporter": ticket.reporter_id,
        "category": ticket.category_id or "",
        "status": ticket.status,
        "priority": ticket.priority,
        "assignee": ticket.assignee_id or "",
        "resolution": ticket.resolution,
        "comment": "",
        **changes,
    }


def listed(response: Any) -> list[str]:
    return [ticket.title for ticket in response.context["cl"].result_list]


# -- who may ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "add/", "{pk}/change/", "{pk}/merge/", "{pk}/unmerge/", "{pk}/history/"]
)
def test_nothing_without_rights(client: Client, name: str) -> None:
    address = LIST + name.format(pk=TicketFactory().pk)
    assert client.get(address).status_code == 302
    client.force_login(UserFactory())
    assert client.get(address).status_code == 302
    client.force_login(UserFactory(is_staff=True))
    assert client.get(address).status_code == 403
    assert client.post(address, {"title": "New"}).status_code == 403


def test_who_may_only_look_changes_nothing(client: Client) -> None:
    ticket, other = TicketFactory(), TicketFactory()
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket", "add_comment"]))
    response = client.get(page(ticket))
    assertNotContains(response, 'name="title"')
    assertNotContains(response, 'name="comment"')
    assertNotContains(response, "/merge/")
    assert client.post(page(ticket), entries(ticket, title="New")).status_code == 403
    assert client.post(page(ticket, "merge"), {"target": other.pk}).status_code == 403
    assert Ticket.objects.filter(version=1).count() == 2


@pytest.mark.parametrize("name", ["change", "merge", "unmerge", "history"])
def test_a_ticket_that_is_gone(agent_client: Client, name: str) -> None:
    response = agent_client.get(f"{LIST}9999/{name}/")
    assert response.status_code == (302 if name == "change" else 404)


def test_a_ticket_deleted_while_it_is_saved(agent_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = TicketFactory()
    data = entries(ticket, title="New")
    locked = Ticket.locked

    def deleted_first(self: Ticket) -> Ticket:
        Ticket.objects.filter(pk=self.pk).delete()
        return locked(self)

    monkeypatch.setattr(Ticket, "locked", deleted_first)
    response = agent_client.post(page(ticket), data, follow=True)
    assertContains(response, "Perhaps it was deleted?")


# -- the list --------------------------------------------------------------------------------------------


def test_the_list_shows_state_and_age(agent_client: Client) -> None:
    TicketFactory(title="<b>Hot</b> printer", priority="urgent")
    response = agent_client.get(LIST)
    assertContains(response, "&lt;b&gt;Hot&lt;/b&gt; printer")
    assertContains(response, '<span class="badge priority-urgent">urgent</span>', html=True)
    assertContains(response, "1 ticket")


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("", {"mine", "free", "urgent", "waiting", "solved", "reported"}),
        ("open", {"mine", "free", "urgent", "waiting", "reported"}),
        ("mine", {"mine"}),
        ("unassigned", {"free", "urgent", "waiting", "reported"}),
        ("urgent", {"urgent"}),
        ("pending", {"waiting"}),
        ("reported", {"reported"}),
        ("nonsense", {"mine", "free", "urgent", "waiting", "solved", "reported"}),
    ],
)
def test_quick_views(agent_client: Client, alice: User, view: str, expected: set[str]) -> None:
    TicketFactory(title="mine", assignee=alice)
    TicketFactory(title="free")
    TicketFactory(title="urgent", priority="urgent")
    TicketFactory(title="waiting", status="pending")
    TicketFactory(title="solved", status="resolved", assignee=alice, priority="urgent")
    TicketFactory(title="reported", reporter=alice)
    response = agent_client.get(LIST, {"view": view} if view else {})
    assert set(listed(response)) == expected
    if len(expected) < 6:
        assertContains(response, f'<a href="?view={view}" aria-current="page">')


def test_waiting_for_me(agent_client: Client, alice: User, bob: User) -> None:
    """Mine, and the last word is somebody else's; without any word those that are not pending."""
    _fresh, answered, replied, pending, asked = (
        TicketFactory(title=title, assignee=alice)
        for title in ("fresh", "answered", "replied", "pending", "asked")
    )
    TicketFactory(title="somebody else's", assignee=bob)
    for ticket, authors in ((answered, [bob, alice]), (replied, [alice, bob]), (asked, [bob])):
        for author in authors:
            ticket.add_comment(by=author, body="…", internal=False, via="chat")
    for ticket in (pending, asked):
        ticket.change(by=bob, via="admin", status="pending")
    assert set(listed(agent_client.get(LIST, {"view": "waiting"}))) == {"fresh", "replied", "asked"}


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2025", {"may", "june", "silvester"}),
        ("2025-06", {"june"}),
        ("2025-12-31", {"silvester"}),
        ("2024", set()),
        ("2025-13", {"may", "june", "silvester", "now"}),
        ("9999", {"may", "june", "silvester", "now"}),
        ("nonsense", {"may", "june", "silvester", "now"}),
        ("today", {"now"}),
        ("week", {"now"}),
    ],
)
def test_by_calendar(agent_client: Client, created: str, expected: set[str]) -> None:
    for title, moment in (
        ("may", datetime(2025, 5, 31, 23, tzinfo=UTC)),
        ("june", datetime(2025, 6, 1, tzinfo=UTC)),
        ("silvester", datetime(2025, 12, 31, 23, tzinfo=UTC)),
    ):
        TicketFactory(title=title, created_at=moment)
    TicketFactory(title="now")
    assert set(listed(agent_client.get(LIST, {"created": created}))) == expected


def test_the_calendar_leads_down_and_up(agent_client: Client) -> None:
    TicketFactory(created_at=datetime(2024, 2, 29, tzinfo=UTC))
    assertContains(agent_client.get(LIST), "?created=2024")
    assertContains(agent_client.get(LIST, {"created": "2024"}), "?created=2024-02")
    month = agent_client.get(LIST, {"created": "2024-02"})
    for address in ("?created=2024-02-29", "?created=2024"):
        assertContains(month, f'"{address}"')
    assertNotContains(month, "?created=2024-02-30")


@pytest.mark.parametrize("query", ["toner", "NB-10234", "#{pk}", '"toner low"', "jam OR toner"])
def test_search(agent_client: Client, query: str) -> None:
    found = TicketFactory(title="Toner low", description="on NB-10234")
    TicketFactory(title="Something else")
    assert listed(agent_client.get(LIST, {"q": query.format(pk=found.pk)})) == ["Toner low"]


@pytest.mark.parametrize("query", ["\0", "'", '"', "((", "\\", "& | !", "x" * 5000, "<script>"])
def test_odd_searches(agent_client: Client, query: str) -> None:
    response = agent_client.get(LIST, {"q": query})
    assert response.status_code == 200
    assertNotContains(response, "<script>alert")


def test_filters(agent_client: Client, alice: User) -> None:
    vpn = CategoryFactory(name="VPN")
    TicketFactory(title="a", category=vpn, assignee=alice)
    TicketFactory(title="b", status="closed")
    assert listed(agent_client.get(LIST, {"assignee": alice.pk})) == ["a"]
    assert listed(agent_client.get(LIST, {"assignee": "none"})) == ["b"]
    assert listed(agent_client.get(LIST, {"category__id__exact": vpn.pk})) == ["a"]
    assert listed(agent_client.get(LIST, {"status__exact": "closed"})) == ["b"]


@pytest.mark.parametrize("column", range(1, 7))
def test_sorting(agent_client: Client, column: int) -> None:
    TicketFactory.create_batch(3)
    assert len(listed(agent_client.get(LIST, {"o": column}))) == 3


def test_the_list_costs_as_many_queries_for_many_rows(
    agent_client: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        TicketFactory(assignee=alice, category=CategoryFactory(), title=f"NB-{number:05}")
    with django_assert_max_num_queries(10):
        agent_client.get(LIST)
    with django_assert_max_num_queries(10):
        agent_client.get(LIST, {"q": "nb-00007", "view": "mine"})


def test_counting_stops_at_the_bound(agent_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedPaginator, "MAX_ROWS", 3)
    monkeypatch.setattr(TicketAdmin, "list_per_page", 2)
    TicketFactory.create_batch(3)
    assertContains(agent_client.get(LIST), "3 tickets")
    TicketFactory()
    assertContains(agent_client.get(LIST), "more than 3, the first of them listed")
    assert len(listed(agent_client.get(LIST, {"p": 2}))) == 1


def test_the_list_does_not_fetch_long_texts(agent_client: Client) -> None:
    TicketFactory(description="x" * 100_000)
    deferred = agent_client.get(LIST).context["cl"].result_list[0].get_deferred_fields()
    assert {"description", "resolution"} <= deferred


# -- the ticket ------------------------------------------------------------------------------------------


def test_the_ticket_page_shows_conversation_and_history(agent_client: Client, alice: User) -> None:
    ticket = TicketFactory(title="Printer <i>", description="<script>alert(1)</script> **bold**")
    ticket.add_comment(by=alice, body="<b>Looking</b>\nat it", internal=True, via="admin")
    ticket.change(by=alice, via="admin", status="open")
    response = agent_client.get(page(ticket))
    assertContains(response, "&lt;b&gt;Looking&lt;/b&gt;\nat it")
    assertContains(response, "&lt;script&gt;alert(1)&lt;/script&gt; **bold**")
    assertNotContains(response, "<script>alert(1)")
    assertContains(response, "changed “status” from new to open")
    assertContains(response, '<span class="badge internal">internal</span>', html=True)


def test_long_texts_do_not_swell_the_page(agent_client: Client, alice: User) -> None:
    ticket = TicketFactory(description="a" * 100_000)
    for letter in "bcdef":
        ticket.change(by=alice, via="admin", description=letter * 100_000)
    response = agent_client.get(page(ticket))
    assertContains(response, "f" * 100_000)  # in the form, to be edited
    assertContains(response, "Show the whole texts", count=5)
    assert len(response.content) < 300_000


def test_the_reporters_other_tickets(agent_client: Client, charlie: User) -> None:
    ticket, other = (TicketFactory(title=title, reporter=charlie) for title in ("This", "<b>Other</b>"))
    duplicate = TicketFactory(title="Its duplicate", reporter=charlie)
    duplicate.merge_into(ticket, by=None)
    TicketFactory(title="Somebody else's")
    response = agent_client.get(page(ticket))
    assert response.context["others"] == [other]
    assertContains(response, "Also reported by charlie")
    assertContains(response, f"?reporter__id__exact={charlie.pk}")
    everything = agent_client.get(LIST, {"reporter__id__exact": charlie.pk})
    assert set(listed(everything)) == {"This", "<b>Other</b>", "Its duplicate"}


def test_the_ticket_page_is_cheap(
    agent_client: Client, alice: User, django_assert_max_num_queries: Any
) -> None:
    ticket = TicketFactory(assignee=alice)
    for number in range(25):
        ticket.add_comment(by=UserFactory(), body=f"{number}", internal=False, via="chat")
        TicketFactory().merge_into(ticket, by=alice)
    with django_assert_max_num_queries(20):
        assert agent_client.get(page(ticket)).status_code == 200


def test_a_new_ticket(agent_client: Client, alice: User, charlie: User) -> None:
    assertContains(agent_client.get(f"{LIST}add/"), "Alice Adams")
    data = {"title": " New \0one ", "description": "a\r\nb", "reporter": charlie.pk, "priority": "high"}
    response = agent_client.post(f"{LIST}add/", data)
    assertRedirects(response, LIST)
    ticket = Ticket.objects.get()
    assert (ticket.title, ticket.description, ticket.source) == ("New one", "a\nb", "admin")
    event = ticket.events.get()
    assert (event.actor, event.via, ticket.reporter) == (alice, "admin", charlie)


@pytest.mark.parametrize("title", ["", "   ", "\u200b", "x" * 201])
def test_a_title_that_nobody_can_read(agent_client: Client, alice: User, title: str) -> None:
    data = {"title": title, "description": "kept", "reporter": alice.pk, "priority": "high"}
    response = agent_client.post(f"{LIST}add/", data)
    assertContains(response, "errorlist")
    assertContains(response, "kept")
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("text", ["😀" * 50_000, "مرحبا \u202e", "a\0b\ud7ff", "line\n" * 20_000])
def test_texts_of_all_kinds(agent_client: Client, text: str) -> None:
    ticket = TicketFactory()
    assertRedirects(agent_client.post(page(ticket), entries(ticket, title="🖨️", description=text)), LIST)
    stored = Ticket.objects.get()
    assert (stored.title, stored.description) == ("🖨️", text.replace("\0", ""))


def test_saving_changes_what_was_edited_and_nothing_else(agent_client: Client, alice: User) -> None:
    ticket = TicketFactory(title="Old", description="first\nsecond\n")
    data = entries(ticket, title="New", assignee=alice.pk, description="first\r\nsecond\r\n")
    assertRedirects(agent_client.post(page(ticket), data), LIST)
    ticket.refresh_from_db()
    assert (ticket.title, ticket.assignee, ticket.version) == ("New", alice, 2)
    events = ticket.events.exclude(kind="created")
    assert set(events.values_list("field", "actor", "via")) == {
        ("title", alice.pk, "admin"),
        ("assignee", alice.pk, "admin"),
    }


def test_saving_without_a_change_records_nothing(agent_client: Client) -> None:
    ticket = TicketFactory(description="  indented, with an end \n")
    assertRedirects(agent_client.post(page(ticket), entries(ticket)), LIST)
    assert Ticket.objects.get().version == 1
    assert ticket.events.count() == 1


@pytest.mark.parametrize("internal", [True, False])
def test_a_comment(agent_client: Client, alice: User, internal: bool) -> None:
    ticket = TicketFactory()
    data = entries(
        ticket, comment="Looking\0 at it\r\nnow", **({"comment_internal": "on"} if internal else {})
    )
    assertRedirects(agent_client.post(page(ticket), data), LIST)
    comment = Comment.objects.get()
    assert (comment.body, comment.author, comment.internal) == ("Looking at it\nnow", alice, internal)
    assert Ticket.objects.get().version == 1


def test_no_comment_without_the_right_to(client: Client) -> None:
    ticket = TicketFactory()
    client.force_login(UserFactory(is_staff=True, permissions=["view_ticket", "change_ticket"]))
    assertNotContains(client.get(page(ticket)), 'name="comment"')
    client.post(page(ticket), entries(ticket, comment="sneaky"))
    assert not Comment.objects.exists()


def test_a_comment_on_a_duplicate_says_where_it_went(agent_client: Client, alice: User) -> None:
    target, duplicate = TicketFactory(), TicketFactory()
    duplicate.merge_into(target, by=alice)
    response = agent_client.post(page(duplicate), entries(duplicate, comment="Me too"), follow=True)
    assertContains(response, f"Your comment has been added to #{target.pk}")
    assert Comment.objects.get().ticket == target


# -- two people save -------------------------------------------------------------------------------------


def test_the_second_to_save_is_told_and_loses_nothing(agent_client: Client, bob: User) -> None:
    seen = TicketFactory(title="Old", description="Old text")
    Ticket.objects.get().change(by=bob, via="admin", priority="urgent", title="Bob's")
    data = entries(seen, description="Alice's text", comment="Alice's comment")
    response = agent_client.post(page(seen), data)
    assertContains(response, "Nothing has been saved yet")
    assertContains(response, "Bob Brown: changed “priority” from normal to urgent")
    form = response.context["adminform"].form
    assert form["description"].value() == "Alice's text"
    assert form["comment"].value() == "Alice's comment"
    assert (form["priority"].value(), form["title"].value()) == (
        "urgent",
        "Bob's",
    )  # she had not touched them
    assert not form["title"].errors
    assert not Ticket.objects.exclude(description="Old text").exists()
    assert not Comment.objects.exists()

    again = {field.html_name: field.value() or "" for field in form if field.value() is not False}
    assertRedirects(agent_client.post(page(seen), again), LIST)
    stored = Ticket.objects.get()
    assert (stored.title, stored.priority, stored.description) == ("Bob's", "urgent", "Alice's text")
    assert Comment.objects.get().body == "Alice's comment"


def test_two_entries_for_one_field_are_shown_both(agent_client: Client, bob: User, alice: User) -> None:
    seen = TicketFactory(title="Old")
    Ticket.objects.get().change(by=bob, via="admin", title="Bob's", assignee=bob)
    response = agent_client.post(page(seen), entries(seen, title="Alice's", assignee=alice.pk))
    form = response.context["adminform"].form
    assert form["title"].value() == "Alice's"
    assert form["title"].errors == [
        "Somebody else has set this to “Bob&#x27;s”. If you save again, your entry replaces it.".replace(
            "&#x27;", "'"
        )
    ]
    assert "Bob Brown" in form["assignee"].errors[0]
    again = {field.html_name: field.value() or "" for field in form if field.value() is not False}
    assertRedirects(agent_client.post(page(seen), again), LIST)
    stored = Ticket.objects.get()
    assert (stored.title, stored.assignee) == ("Alice's", alice)


def test_a_merge_in_the_meantime_is_told_too(agent_client: Client, bob: User) -> None:
    seen, target = TicketFactory(), TicketFactory(title="Target")
    Ticket.objects.get(pk=seen.pk).merge_into(target, by=bob)
    response = agent_client.post(page(seen), entries(seen, title="New"))
    assertContains(response, "Bob Brown: merged it as a duplicate into")


def test_a_form_without_its_version_is_refused(agent_client: Client) -> None:
    ticket = TicketFactory()
    data = entries(ticket, title="New")
    del data["seen_version"]
    assertContains(agent_client.post(page(ticket), data), "Please load the page again")
    assert Ticket.objects.get().version == 1


# -- merging ---------------------------------------------------------------------------------------------


def test_merge_asks_previews_and_does_it(agent_client: Client, alice: User) -> None:
    duplicate, target = TicketFactory(title="Second"), TicketFactory(title="First")
    assertContains(agent_client.get(page(duplicate)), f'href="{page(duplicate, "merge")}"')
    assertContains(agent_client.get(page(duplicate, "merge")), 'name="target"')
    preview = agent_client.get(page(duplicate, "merge"), {"target": f"#{target.pk}"})
    assertContains(preview, f"#{duplicate.pk} is closed and points to #{target.pk}")
    assert Ticket.objects.filter(duplicate_of=None).count() == 2
    response = agent_client.post(page(duplicate, "merge"), {"target": target.pk}, follow=True)
    assertContains(response, "It can be undone at any time")
    assertContains(response, f'href="{page(target)}"')
    event = duplicate.events.latest("pk")
    assert (event.kind, event.actor, event.via) == ("merged", alice, "admin")
    assertContains(agent_client.get(page(target)), f'href="{page(duplicate)}"')


def test_a_merge_into_a_solved_ticket_says_so_before_and_after(agent_client: Client) -> None:
    duplicate, target = TicketFactory(), TicketFactory(status="resolved")
    warning = f'<a href="{page(target)}">#{target.pk}</a> is already resolved: reopen it'
    assertContains(agent_client.get(page(duplicate, "merge"), {"target": target.pk}), warning)
    response = agent_client.post(page(duplicate, "merge"), {"target": target.pk}, follow=True)
    assertContains(response, f"#{duplicate.pk} is now a duplicate of #{target.pk}. {warning}")


def test_a_solved_duplicate_of_a_solved_ticket_is_no_surprise(agent_client: Client) -> None:
    duplicate, target = TicketFactory(status="closed"), TicketFactory(status="resolved")
    assertNotContains(
        agent_client.get(page(duplicate, "merge"), {"target": target.pk}), "is already resolved"
    )
    response = agent_client.post(page(duplicate, "merge"), {"target": target.pk}, follow=True)
    assertContains(response, f"#{duplicate.pk} is now a duplicate of #{target.pk}.")
    assertNotContains(response, "is already resolved")


def test_titles_with_quotation_marks_are_quoted(agent_client: Client, alice: User) -> None:
    duplicate, target = TicketFactory(title='Meldung „Fehler“ und "x"'), TicketFactory(title="Says “no”")
    question = agent_client.get(page(duplicate, "merge"))
    assertContains(question, f"“#{duplicate.pk} Meldung ‚Fehler‘ und &#x27;x&#x27;”")
    duplicate.merge_into(target, by=alice)
    assertContains(agent_client.get(page(duplicate, "unmerge")), f"“#{target.pk} Says ‘no’”")


def test_unmerge_asks_and_does_it(agent_client: Client, alice: User) -> None:
    duplicate, target = TicketFactory(status="pending"), TicketFactory()
    duplicate.merge_into(target, by=alice)
    assertContains(agent_client.get(page(target)), f'href="{page(duplicate, "unmerge")}"')
    assertContains(agent_client.get(page(duplicate, "unmerge")), "Its status becomes “pending” again")
    response = agent_client.post(page(duplicate, "unmerge"), follow=True)
    assertRedirects(response, page(duplicate))
    assertContains(response, f"#{duplicate.pk} stands for itself again.")
    assertNotContains(response, "undone at any time")
    assert Ticket.objects.get(pk=duplicate.pk).status == "pending"


def test_unmerge_of_what_is_not_merged_says_so(agent_client: Client) -> None:
    ticket = TicketFactory()
    assertRedirects(agent_client.get(page(ticket, "unmerge")), page(ticket))
    assertContains(agent_client.post(page(ticket, "unmerge"), follow=True), "is not a duplicate")


@pytest.mark.parametrize("target", ["", "abc", "9" * 18, "0", "#", "\0"])
def test_merge_into_nothing(agent_client: Client, target: str) -> None:
    ticket = TicketFactory()
    for send in (agent_client.get, agent_client.post):
        response = send(page(ticket, "merge"), {"target": target})
        assertContains(response, "errorlist")
    assert Ticket.objects.get().version == 1


def test_impossible_merges_are_refused_with_a_sentence(agent_client: Client, alice: User) -> None:
    a, b = TicketFactory(), TicketFactory()
    assertContains(agent_client.post(page(a, "merge"), {"target": a.pk}), "cannot be merged into itself")
    a.merge_into(b, by=alice)
    assertContains(agent_client.post(page(b, "merge"), {"target": a.pk}), "itself a duplicate")
    assertContains(agent_client.post(page(a, "merge"), {"target": b.pk}), "already a duplicate")


def test_everybody_who_reported_it_is_named_once(agent_client: Client, alice: User) -> None:
    a, b = TicketFactory(), TicketFactory()
    again = TicketFactory(reporter=a.reporter)
    a.merge_into(b, by=alice)
    again.merge_into(b, by=alice)
    assertContains(agent_client.get(page(b)), "reported by 2 people")


def test_the_status_of_a_duplicate_cannot_be_edited(agent_client: Client, alice: User) -> None:
    duplicate = TicketFactory()
    duplicate.merge_into(TicketFactory(), by=alice)
    assertNotContains(agent_client.get(page(duplicate)), 'name="status"')
    agent_client.post(page(duplicate), entries(duplicate, status="open", title="New"))
    stored = Ticket.objects.get(pk=duplicate.pk)
    assert (stored.status, stored.title) == ("closed", "New")


# -- the rest --------------------------------------------------------------------------------------------


def test_the_whole_history(agent_client: Client, alice: User) -> None:
    ticket = TicketFactory(title="0")
    for number in range(1, 35):
        ticket.change(by=alice, via="api", title=str(number))
    assertContains(agent_client.get(page(ticket)), "Show the whole history")
    assertNotContains(agent_client.get(page(ticket)), "from 0 to 1 ")
    assertContains(agent_client.get(page(ticket, "history")), "changed “title” from 0 to 1 ")


def test_events_are_read_only(client: Client) -> None:
    event = TicketFactory().events.get()
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    assertContains(client.get("/admin/tickets/ticketevent/"), "created the ticket")
    address = f"/admin/tickets/ticketevent/{event.pk}"
    assert client.get(f"{address}/change/").status_code == 200
    assert client.post(f"{address}/change/", {"new": "forged"}).status_code == 403
    assert client.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
    assert client.get("/admin/tickets/ticketevent/add/").status_code == 403


@pytest.mark.parametrize("group", ["agent", "supervisor"])
def test_supervisors_delete_tickets_agents_do_not(client: Client, groups: None, group: str) -> None:
    ticket = TicketFactory()
    person = UserFactory(is_staff=True)
    person.groups.add(Group.objects.get(name=group))
    client.force_login(person)
    response = client.post(page(ticket, "delete"), {"post": "yes"})
    assert (response.status_code, Ticket.objects.count()) == ((302, 0) if group == "supervisor" else (403, 1))


def test_agents_choose_a_reporter_but_see_no_password(client: Client, groups: None, charlie: User) -> None:
    agent = UserFactory(is_staff=True)
    agent.groups.add(Group.objects.get(name="agent"))
    client.force_login(agent)
    query = {"app_label": "tickets", "model_name": "ticket", "field_name": "reporter", "term": "charl"}
    assert client.get("/admin/autocomplete/", query).json()["results"][0]["text"] == "charlie"
    response = client.get(f"/admin/auth/user/{charlie.pk}/change/")
    assertContains(response, "charlie")
    assertNotContains(response, "field-password")
    assertNotContains(response, "algorithm")


def test_categories(client: Client) -> None:
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    client.post("/admin/tickets/category/add/", {"name": "Printing"})
    assertContains(client.post("/admin/tickets/category/add/", {"name": "PRINTING"}), "already a category")
    assert Category.objects.count() == 1


@pytest.mark.parametrize("name", ["", "add/", "{pk}/change/", "{pk}/merge/", "{pk}/history/"])
def test_pages_carry_neither_style_nor_script_of_their_own(agent_client: Client, name: str) -> None:
    """The content security policy would block them."""
    html = agent_client.get(LIST + name.format(pk=TicketFactory().pk)).content.decode()
    assert " style=" not in html
    assert "<style" not in html
    assert " onclick=" not in html
    assert "<script>" not in html


def test_the_pages_of_the_password_have_the_header_of_the_others(agent_client: Client) -> None:
    for name in ("password_change", "password_change/done"):
        response = agent_client.get(f"/admin/{name}/")
        assertContains(response, 'class="inline-form language-switch"')
        assertContains(response, '<span class="user-name" dir="auto">alice</span>')
        assertContains(response, '<a class="password-link" href="/admin/password_change/">')


def test_deleting_is_the_last_thing_to_do_to_many(client: Client, groups: None) -> None:
    client.force_login(UserFactory(is_superuser=True, is_staff=True))
    TicketFactory()
    form = client.get(LIST).context["action_form"]
    assert [name for name, _label in form.fields["action"].choices] == [
        "",
        "change_many",
        "merge_many",
        "export_as_csv",
        "delete_selected",
    ]
