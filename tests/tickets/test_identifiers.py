"""Both versions of `text_identifiers()` find the same: what is stored was partly computed by the first."""

import json
from pathlib import Path

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tickets
from tickets.migrations import __path__ as migrations

FIRST_VERSION = (Path(migrations[0]) / "sql" / "0001_functions.sql").read_text(encoding="utf-8")
DEMO = json.loads((Path(tickets.__path__[0]) / "demo" / "tickets.json").read_text(encoding="utf-8"))
TELLING = [
    *("PRN", "prn", "4F", "017", "01", "2.14", "NB-10234", "nb_10234", "v2.10", "srv01.example.com", "3rd"),
    *("0x80070005", "Code:E-4711", "00:1A:2b:3C:4d:5E", "2026-03-12", "12.3.26", "10:11:02.123", "16GB"),
    *("#1234", "MIRO", "DBIF_RSQL_SQL_ERROR", "ÄÖÜX", "_", "-", "a_b", "2024-1234-AB", "٣٤٥"),
]
WORDS = st.one_of(
    st.sampled_from(TELLING),
    st.text("AbÄ09-_.:#", max_size=6),
    st.text(max_size=4),
    st.sampled_from(["the", "printer", "nach", "ROOM"]),
)
GAPS = st.sampled_from(
    [" ", " ", " ", "  ", "\n", "\t", ",", ", ", "(", "\u00a0", "\u2013", "\\", "]", "^", "’", "/"]
)
TEXTS = st.lists(st.tuples(WORDS, GAPS), max_size=25).map(
    lambda parts: "".join(word + gap for word, gap in parts).replace("\0", "")
)


@pytest.fixture
def first_version(db: None) -> None:
    """The function as the first migration made it, beside the present one."""
    begin = FIRST_VERSION.index("CREATE FUNCTION text_identifiers(")
    end = FIRST_VERSION.index("$$;", begin) + 3
    with connection.cursor() as cursor:
        cursor.execute(FIRST_VERSION[begin:end].replace("text_identifiers(", "pg_temp.first_version(", 1))


def differences(texts: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """The texts in which the two find something else, with what each finds."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT source, pg_temp.first_version(source), text_identifiers(source)
            FROM unnest(%s::text[]) AS source
            WHERE pg_temp.first_version(source) IS DISTINCT FROM text_identifiers(source)
            """,
            [texts],
        )
        return cursor.fetchall()


@pytest.mark.usefixtures("first_version")
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(TEXTS, min_size=5, max_size=30))
def test_finds_what_the_first_version_found(texts: list[str]) -> None:
    assert differences(texts) == []


@pytest.mark.usefixtures("first_version")
def test_in_whole_tickets_and_at_the_bounds_too() -> None:
    long = " ".join(f"NB-{number}" for number in range(10_000, 13_000))
    shouted = "ALARM IN THE SERVER ROOM SINCE " * 4
    texts = [f"{ticket['title']}\n{ticket['description']}" for ticket in DEMO]
    assert (
        differences([*texts, long, shouted, shouted.lower() + "MIRO", "x" * 19_995 + " PRN-0201", ""]) == []
    )
