"""The evaluation: reading files, its arithmetic, and the product's quality on our own labelled set."""

import gzip
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from retrieval.evaluation import (
    Answer,
    BadFile,
    Labelled,
    LabelledQuery,
    LabelledTicket,
    measures,
    read,
    summary,
)
from retrieval.models import SearchLog, SearchProfile, TicketEmbedding
from tests.factories import TicketFactory
from tickets.models import Ticket

CROSSLINGUAL = Path(__file__).parent.parent / "data" / "crosslingual.json"

GOOD: dict[str, Any] = {
    "tickets": [
        {"id": "A", "lang": "en", "title": "Printer is dead", "description": "Nothing comes out."},
        {"id": "B", "lang": "de", "title": "VPN bricht ab", "description": "Alle zehn Minuten."},
    ],
    "queries": [
        {"id": "q1", "lang": "de", "text": "Drucker tot", "relevant": ["A"], "kind": "crosslingual"},
        {"id": "q2", "lang": "de", "text": "Kaffee ist alle", "relevant": [], "kind": "none"},
    ],
}


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def changed(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def test_reads_tickets_and_queries(tmp_path: Path) -> None:
    labelled = read(write(tmp_path / "set.json", GOOD))
    assert [ticket.id for ticket in labelled.tickets] == ["A", "B"]
    assert labelled.queries[0].relevant == {"A"}
    assert not labelled.queries[1].relevant


def test_reads_gzipped_known_items(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl.gz"
    row = {
        "id": "x:1",
        "lang": "pt",
        "title": "Digitação",
        "original": "Não funciona",
        "english": "Does not work.",
    }
    path.write_bytes(gzip.compress(json.dumps(row).encode()))
    labelled = read(path)
    assert labelled.tickets[0].description == "Does not work."
    assert labelled.queries[0] == LabelledQuery("pt", "Não funciona", frozenset(["x:1"]), "known-item")


TICKET, QUERY = GOOD["tickets"][0], GOOD["queries"][0]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("{", "is not JSON"),
        ("[]", '"tickets" and "queries"'),
        (changed(tickets=[]), '"tickets" must be a list with at least one entry'),
        (changed(queries={}), '"queries" must be a list'),
        (changed(tickets=["A"]), 'Entry 1 of "tickets" is not an object'),
        (changed(tickets=[{**TICKET, "title": None}]), '"title" of ticket 1 must be a text'),
        (changed(tickets=[{**TICKET, "id": None}]), '"id" of ticket 1'),
        (changed(tickets=[TICKET, TICKET]), "same id"),
        (changed(queries=[{**QUERY, "relevant": "A"}]), '"relevant" of query 1 must be a list'),
        (changed(queries=[{**QUERY, "relevant": ["Z"]}]), 'names the ticket "Z"'),
        (changed(queries=[{**QUERY, "text": "  "}]), '"text" of query 1 is blank'),
    ],
)
def test_bad_files_are_told_in_one_sentence(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(BadFile, match=re.escape(says)) as caught:
        read(write(tmp_path / "set.json", data))
    assert "\n" not in str(caught.value)


def test_missing_and_damaged_files_are_told(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(b"{}" * 500)[:20])
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.json", damaged, binary, tmp_path):
        with pytest.raises(BadFile, match="cannot be read"):
            read(path)


def test_summary_by_hand() -> None:
    result = summary([1, 2, None, 6])
    assert result["queries"] == 4
    assert (result["recall@1"], result["recall@5"], result["recall@10"]) == (0.25, 0.5, 0.75)
    assert result["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 6) / 4)


def test_summary_of_nothing() -> None:
    assert summary([]) == {"queries": 0, "recall@1": 0.0, "recall@5": 0.0, "recall@10": 0.0, "mrr": 0.0}


def test_measures_by_kind_and_direction_by_hand() -> None:
    labelled = Labelled(
        [LabelledTicket("A", "en", "", ""), LabelledTicket("B", "de", "", "")],
        [
            LabelledQuery("de", "x", frozenset(["A"]), "crosslingual"),
            LabelledQuery("de", "x", frozenset(["B"]), "identifier"),
            LabelledQuery("de", "x", frozenset(["A", "B"]), "identifier"),
            LabelledQuery("en", "x", frozenset(), "none"),
            LabelledQuery("en", "x", frozenset(), "none"),
        ],
    )
    answers = [Answer(1, True), Answer(None, False), Answer(3, True), Answer(None, True), Answer(None, False)]
    result = measures(labelled, answers)
    assert result["overall"]["queries"] == 3
    assert result["overall"]["recall@1"] == pytest.approx(1 / 3)
    assert result["by_kind"]["identifier"]["recall@5"] == 0.5
    assert result["by_direction"]["de>en"] == summary([1, 3])
    assert result["by_direction"]["de>de"] == summary([None, 3])
    assert result["none"] == {"queries": 2, "below_floor": 1}


def evaluated(path: Path) -> dict[str, Any]:
    output = StringIO()
    call_command("evaluate_retrieval", path, "--json", stdout=output, stderr=StringIO())
    return json.loads(output.getvalue())


@pytest.mark.django_db
def test_quality_on_our_own_set() -> None:
    """120 tickets, 80 queries, German and English; the real model."""
    result = evaluated(CROSSLINGUAL)
    assert result["tickets"] == 120
    search, vectors = result["search"], result["vectors"]
    assert search["overall"]["recall@1"] >= 0.90
    assert search["overall"]["recall@5"] >= 0.99
    assert search["by_kind"]["identifier"]["recall@1"] >= 0.93
    for direction in ("de>en", "en>de"):
        assert search["by_direction"][direction]["recall@1"] >= 0.85
    for depth in ("recall@1", "recall@5", "recall@10", "mrr"):
        assert search["overall"][depth] >= vectors["overall"][depth]
    assert search["none"]["queries"] == 15


@pytest.mark.django_db
def test_real_tickets_are_neither_found_nor_touched(tmp_path: Path) -> None:
    ticket = TicketFactory(title="Drucker tot", description="Der Drucker ist tot.")
    before = (ticket.updated_at, ticket.version)
    result = evaluated(write(tmp_path / "set.json", GOOD))
    assert result["tickets"] == 2
    assert result["search"]["overall"]["recall@1"] == 1.0
    assert [(one.updated_at, one.version) for one in Ticket.objects.all()] == [before]
    assert not TicketEmbedding.objects.exists()
    assert not SearchLog.objects.exists()
    assert not SearchProfile.objects.exists()


@pytest.mark.django_db
def test_the_table_shows_vectors_beside_search(tmp_path: Path) -> None:
    output = StringIO()
    call_command("evaluate_retrieval", write(tmp_path / "set.json", GOOD), stdout=output, stderr=StringIO())
    for part in ("vectors alone", "search", "overall", "de>en", "without a duplicate", "R@10"):
        assert part in output.getvalue()


@pytest.mark.django_db
def test_odd_texts_are_evaluated(tmp_path: Path) -> None:
    odd = {**TICKET, "id": "odd", "title": "T" * 300, "description": "a\x00b \ud800 " + "x1 " * 5_000}
    blank = {**TICKET, "id": "blank", "title": " ", "description": ""}
    result = evaluated(write(tmp_path / "set.json", changed(tickets=[TICKET, odd, blank])))
    assert result["search"]["overall"]["recall@1"] == 1.0


@pytest.mark.django_db
def test_without_a_provider_the_command_says_what_to_set(tmp_path: Path, settings: Any) -> None:
    settings.EMBEDDING_PROVIDER = "off"
    with pytest.raises(CommandError, match="EMBEDDING_PROVIDER"):
        call_command("evaluate_retrieval", write(tmp_path / "set.json", GOOD))


@pytest.mark.django_db
def test_a_bad_file_ends_the_command_with_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("evaluate_retrieval", tmp_path / "missing.json")
