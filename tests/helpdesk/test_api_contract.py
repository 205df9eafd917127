"""Requests made up from the OpenAPI document, sent to the live site: it never fails and keeps its word."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets.api.docs import document
from tickets.api.models import ApiToken

EXAMPLES = 8  # for each operation; more find nothing new within a test run's time
schema = schemathesis.openapi.from_dict(document())


@pytest.fixture
def tickets(transactional_db: Any) -> list[int]:
    """Some tickets with everything on them; made-up ids mostly lead to one of these."""
    bob = UserFactory(username="bob")
    plain, target = (
        TicketFactory(),
        TicketFactory(category=CategoryFactory(), assignee=UserFactory(is_staff=True)),
    )
    target.add_comment(by=bob, body="Me too", internal=False, via="chat")
    plain.merge_into(target, bob)
    return [plain.pk, target.pk]


@pytest.fixture
def token(transactional_db: Any) -> str:
    alice = UserFactory(agent=True, username="alice")
    return ApiToken.issue(user=alice, name="made-up requests", by=alice)[1]


@pytest.fixture(autouse=True)
def _no_limit(settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 0


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_keeps_its_word(case: Case, asgi_server: str, tickets: list[int], token: str) -> None:
    made_up = case.path_parameters.get("id")
    if isinstance(made_up, int) and made_up % 4:
        case.path_parameters["id"] = tickets[made_up % 2]
    case.call_and_validate(
        base_url=asgi_server,
        headers={"Authorization": f"Bearer {token}"},
        # Valid in shape is not always valid: a person or a category may not exist.
        excluded_checks=[positive_data_acceptance, ignored_auth],
    )
