import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from tests.factories import UserFactory
from tickets.roles import create_groups


@pytest.fixture
def alice(db: None) -> User:
    """An agent."""
    return UserFactory(username="alice", first_name="Alice", last_name="Adams", agent=True)


@pytest.fixture
def bob(db: None) -> User:
    """Another agent."""
    return UserFactory(username="bob", first_name="Bob", last_name="Brown", agent=True)


@pytest.fixture
def charlie(db: None) -> User:
    """A person without rights."""
    return UserFactory(username="charlie")


@pytest.fixture
def agent_client(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def groups(db: None) -> None:
    """The groups of the migration, also where a transactional test has emptied the tables."""
    create_groups(Group, Permission)
