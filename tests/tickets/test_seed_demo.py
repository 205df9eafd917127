from collections import Counter
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tickets.language import detect_language
from tickets.models import Ticket, TicketEvent

pytestmark = pytest.mark.django_db


def seed() -> str:
    out = StringIO()
    call_command("seed_demo", stdout=out)
    return out.getvalue()


@pytest.fixture
def trial(settings: Any) -> None:
    settings.TRIAL = True


def test_refuses_where_people_work() -> None:
    with pytest.raises(CommandError, match="TRIAL=on"):
        seed()
    assert not User.objects.exists()


def test_a_helpdesk_after_some_weeks(trial: None) -> None:
    seed()
    tickets = list(Ticket.objects.select_related("category"))
    assert len(tickets) >= 60
    languages = Counter(detect_language(f"{ticket.title}. {ticket.description}") for ticket in tickets)
    assert abs(languages["de"] - languages["en"]) <= len(tickets) / 5
    assert languages["de"] + languages["en"] >= 0.9 * len(tickets)
    assert len({ticket.category for ticket in tickets}) >= 9
    assert {ticket.status for ticket in tickets} == set(Ticket.Status)
    assert all(
        bool(ticket.resolution) == (ticket.status == "resolved")
        for ticket in tickets
        if not ticket.is_resolved
    )
    assert sum(bool(ticket.resolution) for ticket in tickets) >= 20
    assert sum(bool(ticket.identifiers) for ticket in tickets) >= 15
    assert Ticket.objects.exclude(duplicate_of=None).count() == 1
    ages = sorted(timezone.now() - ticket.created_at for ticket in tickets)
    assert ages[0] < timedelta(days=1)
    assert ages[-1] > timedelta(days=21)


def test_the_ticket_of_the_first_story(trial: None) -> None:
    """What "Drucker im zweiten Stock reagiert nicht" has to find: in English, and without a German twin."""
    seed()
    ticket = Ticket.objects.get(title="Printout fails on second floor")
    assert not ticket.is_resolved
    assert not Ticket.objects.matching_words("zweiten stock").exists()


def test_history_is_as_in_life(trial: None) -> None:
    seed()
    assert TicketEvent.objects.filter(created_at__gt=timezone.now()).count() == 0
    for ticket in Ticket.objects.prefetch_related("events"):
        events = sorted(ticket.events.all(), key=lambda event: event.pk)
        moments = [event.created_at for event in events]
        assert events[0].kind == "created"
        assert moments == sorted(moments)
        assert moments[0] == ticket.created_at
        assert moments[-1] == ticket.updated_at or events[-1].kind.startswith("duplicate")
    assert list(Ticket.objects.order_by("pk")) == list(Ticket.objects.order_by("created_at"))


def test_the_second_time_nothing_comes_back(trial: None) -> None:
    assert "77 new tickets" in seed()
    Ticket.objects.filter(title="Printout fails on second floor").delete()
    Ticket.objects.first().change(by=None, via="system", title="Edited")  # type: ignore[union-attr]
    before = [list(model.objects.order_by("pk").values()) for model in (User, Ticket, TicketEvent)]
    assert "0 new tickets, 0 new people" in seed()
    assert before == [list(model.objects.order_by("pk").values()) for model in (User, Ticket, TicketEvent)]


def test_the_login_works_and_nobody_else_has_one(trial: None, client: Client) -> None:
    assert "Log in as demo / demo-helpdesk" in seed()
    assert client.post("/login/", {"username": "demo", "password": "demo-helpdesk"}).status_code == 302
    others = User.objects.exclude(username="demo")
    assert not any(user.has_usable_password() for user in others)
    agents = others.filter(is_staff=True)
    assert agents.count() == 3
    assert all(agent.has_perm("tickets.change_ticket") for agent in agents)
