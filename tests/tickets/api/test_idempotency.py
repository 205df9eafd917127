"""`Idempotency-Key`: sent twice, done once."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from rest_framework.test import APIClient

from tests.factories import TicketFactory, UserFactory
from tests.tickets.api.conftest import client_of
from tickets.api.models import IdempotencyKey
from tickets.models import Comment, Ticket

TICKETS = "/api/v1/tickets/"


def create(client: APIClient, key: str, **body: Any) -> Any:
    body = body or {"title": "Printer", "description": "2nd floor"}
    return client.post(TICKETS, body, format="json", headers={"Idempotency-Key": key})


def test_the_same_request_gets_the_same_answer(client: APIClient, alice: User) -> None:
    first = create(client, "k")
    Ticket.objects.get().change(by=alice, via="admin", title="Changed since")
    again = create(client, "k", description="2nd floor", title="Printer")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert first["Location"] == again["Location"]
    assert first["ETag"] == again["ETag"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert Ticket.objects.count() == 1


def test_another_body_is_refused(client: APIClient) -> None:
    create(client, "k")
    response = create(client, "k", title="Other")
    assert response.status_code == 422
    assert response.json()["type"] == "urn:helpdesk:problem:idempotency-key-reused"
    assert Ticket.objects.count() == 1


def test_another_address_is_refused(client: APIClient) -> None:
    create(client, "k", title="x")
    comments = f"{TICKETS}{Ticket.objects.get().pk}/comments/"
    response = client.post(comments, {"title": "x"}, format="json", headers={"Idempotency-Key": "k"})
    assert response.status_code == 422


def test_keys_belong_to_one_person(client: APIClient) -> None:
    create(client, "k")
    assert "Idempotency-Replayed" not in create(client_of(UserFactory(agent=True)), "k")
    assert Ticket.objects.count() == 2


def test_another_key_is_another_ticket(client: APIClient) -> None:
    create(client, "k")
    create(client, "l")
    assert Ticket.objects.count() == 2


def test_after_an_error_the_key_is_free(client: APIClient) -> None:
    assert create(client, "k", title="").status_code == 400
    assert create(client, "k", title="Better").status_code == 201


def test_comments_too(client: APIClient) -> None:
    ticket = TicketFactory()
    for _ in range(2):
        address = f"{TICKETS}{ticket.pk}/comments/"
        client.post(address, {"body": "Same here"}, format="json", headers={"Idempotency-Key": "k"})
    assert Comment.objects.count() == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä"])
def test_a_bad_key_is_refused(client: APIClient, key: str) -> None:
    response = create(client, key)
    assert response.status_code == 400
    assert response.json()["errors"][0]["header"] == "Idempotency-Key"


def test_is_forgotten_after_a_day(client: APIClient) -> None:
    create(client, "k")
    create(client, "other")
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=23, minutes=59))
    assert "Idempotency-Replayed" in create(client, "k")
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    assert "Idempotency-Replayed" not in create(client, "k")
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_sent_at_the_same_moment_creates_one_ticket() -> None:
    client = client_of(UserFactory(agent=True))
    barrier, answers = threading.Barrier(6), []

    def send() -> None:
        barrier.wait()
        answers.append(create(client, "k"))
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer for answer in answers) == 5
    assert Ticket.objects.count() == 1
