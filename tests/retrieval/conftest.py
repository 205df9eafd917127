"""A Voyage server for the tests of retrieval, and settings that lead to it."""

from collections.abc import Iterator

import pytest

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
