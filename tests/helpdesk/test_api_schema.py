"""The OpenAPI document: checked in, complete, and true to what the API does."""

import os
from pathlib import Path
from typing import Any

import yaml
from django.test import Client
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from tickets.api.docs import document

CHECKED_IN = Path(__file__).parents[2] / "docs" / "openapi.yaml"


def test_is_valid_and_the_checked_in_one_is_current() -> None:
    """`UPDATE_OPENAPI=1 pytest tests/helpdesk/test_api_schema.py` writes it anew."""
    validate_schema(document())
    current = OpenApiYamlRenderer().render(document())
    if os.environ.get("UPDATE_OPENAPI"):
        CHECKED_IN.write_bytes(current)
    assert CHECKED_IN.read_bytes() == current, "docs/openapi.yaml is not current"


def test_anybody_may_read_it_in_yaml_and_json_without_a_query(
    client: Client, django_assert_num_queries: Any, db: None
) -> None:
    with django_assert_num_queries(0):
        as_yaml = client.get("/api/v1/schema/", headers={"accept": "application/vnd.oai.openapi"})
        as_json = client.get("/api/v1/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    assert yaml.safe_load(as_yaml.content) == as_json.json()
    assert as_json.json()["openapi"].startswith("3.1")


def test_has_every_address_with_examples_and_problems() -> None:
    paths = document()["paths"]
    assert set(paths) == {
        "/api/v1/categories/",
        "/api/v1/search/",
        "/api/v1/tickets/",
        "/api/v1/tickets/{id}/",
        "/api/v1/tickets/{id}/comments/",
        "/api/v1/tickets/{id}/events/",
        "/api/v1/tickets/{id}/similar/",
    }
    create = paths["/api/v1/tickets/"]["post"]
    assert create["requestBody"]["content"]["application/json"]["examples"]
    assert create["responses"]["201"]["content"]["application/json"]["examples"]
    operations = [operation for path in paths.values() for operation in path.values()]
    for operation in operations:
        assert list(operation["responses"]["400"]["content"]) == ["application/problem+json"]
        assert operation["security"] == [{"token": []}, {"cookieAuth": []}]


def test_lists_say_how_they_can_be_narrowed_and_paged() -> None:
    names = {parameter["name"] for parameter in document()["paths"]["/api/v1/tickets/"]["get"]["parameters"]}
    assert {"cursor", "page_size", "ordering", "status", "q", "created_after", "assignee"} <= names
