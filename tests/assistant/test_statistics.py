"""What supervisors see of the assistant: the right day, the right sums, and a doubt where nothing moves."""

from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from assistant import charts
from assistant.models import Conversation, ConversationTicket, ToolCall, Turn
from assistant.prices import price_of
from assistant.statistics import report, suspicious, weekly_precision
from retrieval.models import Verdict
from tests.factories import TicketFactory, UserFactory
from tickets.roles import create_groups

pytestmark = pytest.mark.django_db
PAGE = "/admin/assistant/turn/statistics/"


@pytest.fixture
def conversation(db: None) -> Conversation:
    return Conversation.objects.create(user=UserFactory())


def turn(conversation: Conversation, **fields: Any) -> Turn:
    defaults = {
        "status": "done", "model": "claude-sonnet-5-5", "first_token_ms": 400, "total_ms": 2000,
        "tokens_in": 1000, "tokens_out": 100, "tokens_cached": 500,
    }  # fmt: skip
    return Turn.objects.create(conversation=conversation, **defaults | fields)


def call(of: Turn, **fields: Any) -> ToolCall:
    return ToolCall.objects.create(
        conversation=of.conversation,
        turn=of,
        tool_use_id=f"toolu_{ToolCall.objects.count()}",
        input={},
        **fields,
    )


@pytest.fixture
def supervisor(client: Client) -> User:
    person = UserFactory(is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_turn"))
    client.force_login(person)
    return person


# -- figures ---------------------------------------------------------------------------------------------


def test_a_day_in_figures(conversation: Conversation) -> None:
    for number in range(1, 21):
        turn(conversation, first_token_ms=number * 100, total_ms=number * 1000, links_removed=number % 2)
    turn(conversation, status="failed", first_token_ms=None, total_ms=None, tokens_in=0, tokens_out=0)
    found = report(7)
    today = found.days[-1]
    assert (today.turns, today.done, today.failed, today.interrupted) == (21, 20, 1, 0)
    assert (today.first_token_median, today.first_token_95) == (1050.0, 1905.0)
    assert (today.total_median, today.total_95) == (10_500.0, 19_050.0)
    assert (today.tokens_in, today.tokens_out, today.links_removed) == (20_000, 2_000, 10)
    assert found.total.turns == 21
    assert [day.turns for day in found.days[:-1]] == [0] * 6


def test_searches_tickets_and_avoided_duplicates(conversation: Conversation) -> None:
    one = turn(conversation)
    for outcome in ("found", "found", "nothing", "unavailable"):
        call(one, name="find_similar_tickets", outcome=outcome)
    ticket = TicketFactory()
    call(one, name="create_ticket", ticket=ticket, creates=True)
    call(one, name="create_ticket", creates=True, is_error=True)
    for judgement in ("same", "different"):
        ConversationTicket.objects.create(
            conversation=conversation, ticket=ticket if judgement == "same" else TicketFactory(),
            version_seen=1, judgement=judgement, judged_at=timezone.now(),
        )  # fmt: skip
    today = report(7).days[-1]
    assert (today.found, today.nothing, today.unavailable) == (2, 1, 1)
    assert (today.created, today.avoided) == (1, 1)


def test_a_day_begins_at_the_persons_midnight(conversation: Conversation) -> None:
    with timezone.override(ZoneInfo("Pacific/Auckland")):
        midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
        turn(conversation, created_at=midnight + timedelta(seconds=1))
        turn(conversation, created_at=midnight - timedelta(seconds=1))
        assert [day.turns for day in report(7).days[-2:]] == [1, 1]


def test_cost_by_list_prices_and_none_for_an_unknown_model(conversation: Conversation) -> None:
    turn(conversation, tokens_in=1_000_000, tokens_out=100_000, tokens_cached=1_000_000)
    turn(conversation, model="somebody-elses")
    found = report(7)
    assert found.total.cost == pytest.approx(2 + 1 + 0.2)
    assert found.unpriced == ["somebody-elses"]
    Turn.objects.filter(model="claude-sonnet-5-5").delete()
    found = report(7)
    assert (found.total.cost, found.has_cost) == (None, False)


def test_a_snapshot_costs_what_its_model_costs() -> None:
    assert price_of("claude-haiku-4-5-20251001") == price_of("claude-haiku-4-5") is not None
    assert price_of("claude-haiku-4-5-2025") is None


def test_precision_a_week(alice_judges: Any) -> None:
    monday = timezone.make_aware(datetime(2026, 6, 1))
    weeks = weekly_precision(10_000)
    assert [(week.same, week.related, week.different) for week in weeks] == [(1, 1, 2), (1, 0, 0)]
    assert weeks[0].begin == monday.date()
    assert [week.precision for week in weeks] == [0.25, 1.0]


@pytest.fixture
def alice_judges(db: None) -> None:
    candidate = TicketFactory()
    judged = [(1, "same"), (2, "related"), (3, "different"), (7, "different"), (8, "same")]  # of June 2026
    for day, judgement in judged:
        moment = timezone.make_aware(datetime(2026, 6, day, 12))
        Verdict.objects.create(candidate=candidate, judgement=judgement, created_at=moment)


# -- what never changes ----------------------------------------------------------------------------------


def test_what_never_moved_over_fifty_turns_is_suspicious(conversation: Conversation) -> None:
    for number in range(49):
        turn(conversation, first_token_ms=number)
    assert suspicious() == set()
    turn(conversation, first_token_ms=49)
    assert {"total_ms", "links_removed", "found", "avoided", "failed", "done"} <= suspicious()
    assert "first_token_ms" not in suspicious()
    call(turn(conversation, total_ms=1, status="failed"), name="find_similar_tickets", outcome="found")
    assert suspicious().isdisjoint({"total_ms", "found", "failed", "done"})


# -- charts ----------------------------------------------------------------------------------------------


def test_bars_stand_on_each_other_and_fill_the_height() -> None:
    chart = charts.stacked(["a", "b"], [[1, 0], [3, None]])
    assert chart.top == 4
    low, high = chart.bars
    assert low.y + low.height == charts.HEIGHT
    assert high.y + high.height == low.y
    assert high.y == 0
    assert high.height == 3 * low.height


@pytest.mark.parametrize("series", [[[]], [[0, 0]], [[None, None]]])
def test_nothing_is_drawn_of_nothing(series: list[list[float | None]]) -> None:
    assert charts.stacked(["a"] * len(series[0]), series).bars == ()


# -- the page --------------------------------------------------------------------------------------------


def test_the_page(supervisor: User, client: Client, conversation: Conversation, alice_judges: None) -> None:
    turn(conversation, total_ms=2500)
    response = client.get(PAGE)
    assertContains(response, "2.5 s")
    assertContains(response, 'class="chart ', count=7)
    assertNotContains(response, "style=")
    assertNotContains(response, "Suspicious")
    assertContains(client.get(PAGE, {"days": "90"}), 'href="?days=90" aria-current="page"')
    assertContains(client.get(PAGE, {"days": "x"}), 'href="?days=30" aria-current="page"')


def test_the_page_says_what_has_no_price_and_what_is_suspicious(
    supervisor: User, client: Client, conversation: Conversation
) -> None:
    for _number in range(50):
        turn(conversation, model="rehearsal")
    response = client.get(PAGE)
    assertContains(response, "No cost is shown for: rehearsal.")
    assertContains(response, "Suspicious: never changed")
    assertNotContains(response, "Estimated cost")


def test_an_empty_page(supervisor: User, client: Client) -> None:
    assertContains(client.get(PAGE), "No turns in this span of time.")


def test_the_page_costs_as_many_queries_for_many_days(
    supervisor: User, client: Client, conversation: Conversation, django_assert_max_num_queries: Any
) -> None:
    for number in range(60):
        turn(conversation, created_at=timezone.now() - timedelta(days=number))
    with django_assert_max_num_queries(20):
        client.get(PAGE, {"days": "90"})


def test_supervisors_only(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    client.force_login(UserFactory(agent=True))
    assert client.get(PAGE).status_code == 403


@pytest.mark.parametrize(("group", "sees"), [("supervisor", True), ("agent", False)])
def test_the_groups_of_the_product(group: str, sees: bool) -> None:
    create_groups(Group, Permission)  # also where another test has emptied the tables
    import_module("assistant.migrations.0002_supervisors").grant(apps)
    held = Group.objects.get(name=group).permissions.filter(
        content_type__app_label__in=["assistant", "retrieval"]
    )
    assert ("view_turn" in held.values_list("codename", flat=True)) is sees


def test_reasons_of_turns_are_in_words(client: Client) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    talk = Conversation.objects.create(user=root)
    turn = Turn.objects.create(
        conversation=talk, status="interrupted", error="cut", stop_reason="model_context_window_exceeded"
    )
    html = client.get("/admin/assistant/turn/").content.decode()
    assert html.count("conversation too long") == 2  # the filter and the column
    assert "maximum length" in html
    html = client.get(f"/admin/assistant/turn/{turn.pk}/change/").content.decode()
    assert "conversation too long" in html
    assert "window_exceeded" not in html
