from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.factories import UserFactory
from tickets.api.models import ApiToken


def client_of(user: User, **headers: str) -> APIClient:
    """A program that acts as `user`."""
    _token, secret = ApiToken.issue(user=user, name="test", by=user)
    client = APIClient(headers=headers)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def alice(db: Any) -> User:
    return UserFactory(agent=True, username="alice")


@pytest.fixture
def client(alice: User) -> APIClient:
    """A program that acts as alice, an agent."""
    return client_of(alice)
