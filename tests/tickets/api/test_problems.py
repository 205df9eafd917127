"""Every error is a problem document, in the language of the request."""

from typing import Any

import pytest
from django.db import OperationalError
from psycopg.errors import ConnectionFailure
from rest_framework.test import APIClient

from tests.factories import TicketFactory

TICKETS = "/api/v1/tickets/"


def problem_of(response: Any, status: int, kind: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["type"] == f"urn:helpdesk:problem:{kind}"
    assert body["title"]
    assert body["detail"]
    return body


def send(client: APIClient, raw: bytes, content_type: str = "application/json") -> Any:
    return client.generic("POST", TICKETS, raw, content_type)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"title": NaN}',
        b'{"title": "\xff"}',
        b'{"title": ' + b"[" * 100_000,
        b'{"title": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_unreadable_body(client: APIClient, raw: bytes) -> None:
    problem_of(send(client, raw), 400, "parse-error")


def test_says_where_the_json_breaks(client: APIClient) -> None:
    body = problem_of(send(client, b'{\n  "title": x}'), 400, "parse-error")
    assert "line 2, column 12" in body["detail"]


@pytest.mark.parametrize("charset", ["", "; charset=latin-1", "; charset=base64", "; charset=nonsense"])
def test_the_charset_is_utf_8_whatever_is_said(client: APIClient, charset: str) -> None:
    response = send(client, '{"title": "Tür"}'.encode(), f"application/json{charset}")
    assert response.json()["title"] == "Tür"


def test_too_large(client: APIClient, settings: Any) -> None:
    settings.API_MAX_BODY_BYTES = 1_000
    problem_of(send(client, b'{"title": "' + b"x" * 1_000 + b'"}'), 413, "too-large")


def test_larger_than_forms_may_be_is_fine(client: APIClient, settings: Any) -> None:
    text = "x" * 900_000 + "\\u00e4" * 100_000
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE < 3_000_000
    response = send(
        client, b'{"title": "log", ' + b" " * 3_000_000 + b'"description": "' + text.encode() + b'"}'
    )
    assert response.status_code == 201


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data; boundary=x", "application/xml"])
def test_other_types(client: APIClient, content_type: str) -> None:
    problem_of(send(client, b"title=x", content_type), 415, "unsupported-media-type")


@pytest.mark.parametrize("method", ["delete", "put", "options", "trace"])
def test_other_methods(client: APIClient, method: str) -> None:
    response = getattr(client, method)(TICKETS)
    problem_of(response, 405, "method-not-allowed")
    assert response["Allow"] == "GET, HEAD, POST"


def test_other_representations(client: APIClient) -> None:
    problem_of(client.get(TICKETS, headers={"accept": "text/html"}), 406, "not-acceptable")


@pytest.mark.parametrize(
    "path", ["tickets/1/", "tickets/x/", "tickets", "", "nothing/here/", "tickets/1/merge/"]
)
def test_not_found(client: APIClient, path: str) -> None:
    for method in ("get", "post"):
        if (path, method) != ("tickets/1/", "post"):
            problem_of(getattr(client, method)(f"/api/v1/{path}"), 404, "not-found")


@pytest.mark.parametrize("path", ["docs/", "schema/"])
def test_pages_that_are_no_json_otherwise(client: APIClient, path: str) -> None:
    problem_of(client.post(f"/api/v1/{path}"), 405, "method-not-allowed")
    problem_of(client.get(f"/api/v1/{path}", headers={"accept": "image/png"}), 406, "not-acceptable")


def test_another_host(client: APIClient) -> None:
    problem_of(client.get(TICKETS, headers={"host": "evil.example"}), 400, "invalid")


def test_not_logged_in(db: None) -> None:
    problem_of(APIClient().get(TICKETS), 401, "not-authenticated")


def test_several_errors_each_with_its_pointer(client: APIClient) -> None:
    response = client.post(TICKETS, {"title": 1, "priority": "x"}, format="json")
    body = problem_of(response, 400, "invalid")
    assert [(error["pointer"], error["code"]) for error in body["errors"]] == [
        ("#/title", "invalid"),
        ("#/priority", "invalid_choice"),
    ]
    assert body["detail"] == body["errors"][0]["detail"]


def test_in_german(client: APIClient) -> None:
    response = client.post(TICKETS, {}, format="json", headers={"accept-language": "de-AT,de;q=0.9"})
    assert problem_of(response, 400, "invalid")["detail"] == "Dieses Feld ist zwingend erforderlich."
    assert response["Content-Language"] == "de"


def test_database_down(client: APIClient, monkeypatch: Any) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("gone") from ConnectionFailure("gone")

    monkeypatch.setattr("tickets.api.views.ApiView.ticket", fail)
    client.raise_request_exception = False
    response = client.get(f"{TICKETS}{TicketFactory().pk}/")
    problem_of(response, 503, "unavailable")
    assert response["Retry-After"] == "30"


def test_a_fault_of_ours(client: APIClient, monkeypatch: Any) -> None:
    def fail(*args: Any) -> Any:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("tickets.api.views.ApiView.ticket", fail)
    client.raise_request_exception = False
    response = client.get(f"{TICKETS}1/")
    assert "secret" not in response.content.decode()
    problem_of(response, 500, "error")
