"""Own groups and the demo's categories have labels; the database keeps their names."""

import json

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import translation
from django.utils.translation import gettext

from tests.factories import TicketFactory, UserFactory
from tickets.demo import DATA
from tickets.labels import category_label, group_label
from tickets.models import Category, TicketEvent
from tickets.roles import PERMISSIONS

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> Client:
    client = Client(headers={"accept-language": "de"})
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_a_name_that_is_not_ours_is_its_own_label() -> None:
    with translation.override("de"):
        assert (group_label("night shift"), category_label("Kantine")) == ("night shift", "Kantine")


def test_every_group_and_category_of_ours_has_a_label() -> None:
    entries = json.loads((DATA / "tickets.json").read_text(encoding="utf-8"))
    same_in_german = {"ERP", "Hardware", "VPN"}
    with translation.override("de"):
        for name in PERMISSIONS:
            assert group_label(name) != name
        for name in {entry["category"] for entry in entries} - same_in_german:
            assert category_label(name) != name


def test_people_see_the_labels_of_groups(root: Client) -> None:
    with translation.override("de"):
        label = gettext("Supervisors")
    person = UserFactory(is_staff=True)
    group = Group.objects.get(name="supervisor")
    person.groups.add(group)
    for page in ("auth/group/", "auth/user/", f"auth/user/{person.pk}/change/"):
        html = root.get(f"/admin/{page}").content.decode()
        assert f">{label}</" in html
        assert ">supervisor<" not in html


def test_people_see_the_labels_of_categories_and_the_history_keeps_the_name(root: Client) -> None:
    ticket = TicketFactory()
    category = Category.objects.create(name="Printing")
    with translation.override("de"):
        ticket.change(by=ticket.reporter, via="admin", category=category)
        label = gettext("Printing")
    assert TicketEvent.objects.get(field="category").new == "Printing"
    for page in ("tickets/category/", "tickets/ticket/", f"tickets/ticket/{ticket.pk}/change/"):
        html = root.get(f"/admin/{page}").content.decode()
        assert label in html
        assert ">Printing<" not in html
