"""Search on the real database with the real local model."""

import pytest

from retrieval.embedders import get_embedder, model_key
from retrieval.models import SearchLog, TicketEmbedding
from retrieval.search import Outcome, find_similar
from tests.factories import TicketFactory, UserFactory
from tickets.models import Ticket

pytestmark = pytest.mark.django_db


def index_everything() -> None:
    embedder = get_embedder()
    for ticket in Ticket.objects.all():
        vector = embedder.embed_documents([f"{ticket.title}\n{ticket.description}"])[0]
        TicketEmbedding.objects.create(
            ticket=ticket,
            model=model_key(embedder),
            content_hash=ticket.content_hash,
            embedding=vector,
        )


def test_finds_across_languages() -> None:
    alice = UserFactory(is_staff=True, permissions=["view_ticket"])
    printer = TicketFactory(title="Printout fails on second floor", description="The printer does not react.")
    TicketFactory(title="VPN drops every hour")
    index_everything()
    outcome = find_similar("Drucker im zweiten Stock reagiert nicht", user=alice)
    assert outcome.outcome == Outcome.FOUND, outcome
    assert outcome.hits[0].ticket == printer
    assert "meaning" in outcome.hits[0].matched
    assert outcome.coverage.total == 2
    assert SearchLog.objects.get().pk == outcome.log_id
