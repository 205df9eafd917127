"""A Voyage server for the tests of retrieval with settings that lead to it, and an agent at the browser."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import UserFactory
from tests.fakes.voyage import KEY, VoyageServer


@pytest.fixture
def voyage(settings) -> Iterator[VoyageServer]:  # type: ignore[no-untyped-def]
    with VoyageServer() as server:
        settings.EMBEDDING_PROVIDER = "voyage"
        settings.VOYAGE_API_KEY = KEY
        settings.VOYAGE_BASE_URL = server.url
        settings.VOYAGE_DIMENSIONS = 256
        settings.EMBED_TIMEOUT_SECONDS = 5
        yield server


@pytest.fixture
def agent() -> User:
    return UserFactory(agent=True, first_name="Alice")


@pytest.fixture
def alice(client: Client, agent: User) -> Client:
    client.force_login(agent)
    return client
