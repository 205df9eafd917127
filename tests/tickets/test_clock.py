from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import TicketFactory
from tickets import clock


@pytest.mark.django_db
def test_things_happen_when_they_happened() -> None:
    moment = timezone.now() - timedelta(days=400)
    with clock.at(moment):
        ticket = TicketFactory()
    assert ticket.created_at == ticket.updated_at == ticket.events.get().created_at == moment


def test_time_goes_on_afterwards_even_after_an_error() -> None:
    moment = timezone.now() - timedelta(days=1)
    with pytest.raises(RuntimeError), clock.at(moment):
        raise RuntimeError
    assert clock.now() > moment
