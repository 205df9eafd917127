from importlib import import_module

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket
from tickets.permissions import may_add, may_change, may_comment, may_view
from tickets.roles import PERMISSIONS, create_groups

pytestmark = pytest.mark.django_db
CHECKS = {"view": may_view, "add": may_add, "change": may_change}


@pytest.mark.parametrize("action", CHECKS)
def test_staff_with_the_permission_may(action: str) -> None:
    assert CHECKS[action](UserFactory(is_staff=True, permissions=[f"{action}_ticket"]))


@pytest.mark.parametrize("action", CHECKS)
def test_staff_without_the_permission_may_not(action: str) -> None:
    others = [f"{other}_ticket" for other in CHECKS if other != action]
    assert not CHECKS[action](UserFactory(is_staff=True, permissions=others))


@pytest.mark.parametrize("action", CHECKS)
def test_the_permission_alone_is_not_enough(action: str) -> None:
    granted = [f"{action}_ticket"]
    assert not CHECKS[action](UserFactory(permissions=granted))
    assert not CHECKS[action](UserFactory(is_staff=True, is_active=False, permissions=granted))
    assert not CHECKS[action](UserFactory(is_superuser=True))
    assert not CHECKS[action](AnonymousUser())


def test_commenting_needs_to_see_the_ticket() -> None:
    assert may_comment(UserFactory(is_staff=True, permissions=["add_comment", "view_ticket"]))
    assert not may_comment(UserFactory(is_staff=True, permissions=["add_comment"]))
    assert not may_comment(UserFactory(is_staff=True, permissions=["view_ticket"]))


def test_visible_to(alice: User, charlie: User) -> None:
    ticket = TicketFactory()
    assert list(Ticket.objects.visible_to(alice)) == [ticket]
    assert list(Ticket.objects.filter(status="new").visible_to(alice)) == [ticket]
    assert list(Ticket.objects.visible_to(charlie)) == []
    assert list(Ticket.objects.visible_to(AnonymousUser())) == []


def test_the_migration_creates_the_groups_and_the_permissions_they_need() -> None:
    """On a fresh database permissions do not exist yet when migrations run."""
    Group.objects.all().delete()
    Permission.objects.all().delete()
    state = MigrationLoader(connection).project_state(("tickets", "0002_groups"))
    migration = import_module("tickets.migrations.0002_groups")
    with connection.schema_editor() as editor:
        migration.create(state.apps, editor)
    for name, expected in PERMISSIONS.items():
        permissions = Group.objects.get(name=name).permissions
        found = permissions.values_list("content_type__app_label", "codename")
        assert {f"{app}.{codename}" for app, codename in found} == set(expected)


def test_what_agents_and_supervisors_may(groups: None) -> None:
    agent, supervisor = UserFactory(is_staff=True), UserFactory(is_staff=True)
    agent.groups.add(Group.objects.get(name="agent"))
    supervisor.groups.add(Group.objects.get(name="supervisor"))
    for person in (agent, supervisor):
        assert all(check(person) for check in (may_view, may_add, may_change, may_comment))
    assert supervisor.has_perm("tickets.add_category")
    assert not agent.has_perm("tickets.add_category")
    assert not agent.has_perm("tickets.delete_ticket")


def test_a_changed_group_is_left_alone(groups: None) -> None:
    Group.objects.get(name="agent").permissions.clear()
    create_groups(Group, Permission)
    assert not Group.objects.get(name="agent").permissions.exists()
