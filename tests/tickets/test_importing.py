"""Import of tickets from files, good and bad ones."""

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import translation

from tests.factories import CategoryFactory, TicketFactory, UserFactory
from tickets.importing import ImportRefused, Options, Rejected, Result, files, import_tickets, store
from tickets.importing import run as run_module
from tickets.importing.builder import Builder, parse_moment
from tickets.importing.store import Store
from tickets.models import Category, ImportRun, Ticket, TicketEvent


@pytest.fixture(autouse=True)
def _people(request: Any) -> None:
    request.getfixturevalue("transactional_db" if "transactional_db" in request.fixturenames else "db")
    UserFactory(username="bob", email="Bob@example.com")
    UserFactory(username="anna", is_staff=True)


def write(folder: Path, text: str | bytes, name: str = "tickets.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def run(path: Path, **options: Any) -> tuple[Result, list[tuple[int, str]]]:
    rejected: list[Rejected] = []
    flags = {name: options.pop(name) for name in ("dry_run", "again") if name in options}
    result = import_tickets(path, Options(**options), on_rejected=rejected.append, **flags)
    return result, [(each.row.line, each.reason) for each in rejected]


class TestCsv:
    def test_creates_tickets_with_their_history(self, tmp_path: Path) -> None:
        CategoryFactory(name="Hardware")
        path = write(
            tmp_path,
            "title,description,status,priority,category,reporter,assignee,resolution,created_at,resolved_at\n"
            "Printer,Does not print,Gelöst,HIGH,hardware,BOB,anna,New toner,"
            "2025-03-01T10:00:00+01:00,2025-03-02 12:00\n",
        )
        result, rejected = run(path)
        assert (result.created, rejected) == (1, [])
        ticket = Ticket.objects.get()
        assert (ticket.title, ticket.description, ticket.resolution) == (
            "Printer",
            "Does not print",
            "New toner",
        )
        assert (ticket.status, ticket.priority, ticket.source) == ("resolved", "high", "import")
        assert (ticket.reporter.username, ticket.assignee.username) == ("bob", "anna")  # type: ignore[union-attr]
        assert ticket.category.name == "Hardware"  # type: ignore[union-attr]
        assert ticket.created_at == datetime(2025, 3, 1, 9, tzinfo=UTC)
        assert ticket.resolved_at == datetime(2025, 3, 2, 12, tzinfo=UTC)
        event = TicketEvent.objects.get()
        assert (event.kind, event.new, event.via, event.actor) == (
            "created",
            "Printer",
            "import",
            ticket.reporter,
        )
        assert event.created_at == ticket.created_at

    def test_what_the_database_generates_is_there(self, tmp_path: Path) -> None:
        run(write(tmp_path, "title,reporter\nError E-4711 on PRN-0201,bob\n"))
        assert Ticket.objects.filter(identifiers__contains=["e4711"]).exists()
        assert Ticket.objects.matching_words("error").exists()
        TicketFactory()  # ids go on behind the imported ones

    def test_bad_rows_are_listed_with_line_and_reason_and_the_others_go_in(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "title,reporter,status,category,assignee,created_at\n"
            "good,bob,,,,\n"
            ",bob,,,,\n"
            '"two\nlines",nobody,opne,Nonsense,bob,soon\n'
            "short,bob\n"
            "future,bob,,,,2999-01-01\n"
            f"{'x' * 201},bob,,,,\n"
            "also good,bob,,,,\n",
        )
        result, rejected = run(path)
        assert (result.created, result.rejected) == (2, 5)
        reasons = dict(rejected)
        assert list(reasons) == [3, 4, 6, 7, 8]
        assert "title" in reasons[3]
        for part in (
            "reporter: There is nobody “nobody”",
            "status: “opne”",
            "category:",
            "assignee:",
            "created_at:",
        ):
            assert part in reasons[4]
        assert "2 cells instead of 6" in reasons[6]
        assert "future" in reasons[7]
        assert "200" in reasons[8]
        assert set(Ticket.objects.values_list("title", flat=True)) == {"good", "also good"}

    def test_columns_by_mapping_and_constants(self, tmp_path: Path) -> None:
        path = write(tmp_path, "Subject;Text;Who;Extra\nBroken;All of it;bob@EXAMPLE.com;x\nWorn;;;\n")
        result, rejected = run(
            path,
            mapping={"title": "Subject", "description": "Text", "reporter": "Who"},
            constants={"reporter": "anna", "status": "closed"},
        )
        assert (result.unused_columns, rejected) == (("Extra",), [])
        assert set(Ticket.objects.values_list("title", "reporter__username", "status")) == {
            ("Broken", "bob", "closed"),
            ("Worn", "anna", "closed"),
        }

    def test_columns_by_the_labels_of_the_fields_in_any_language(self, tmp_path: Path) -> None:
        CategoryFactory(name="Hardware")
        path = write(
            tmp_path,
            "Titel;Beschreibung;Status;Priorität;KATEGORIE;Melder;Bearbeiter;Lösung;Erstellt;Gelöst am\n"
            "Tür;klemmt;Gelöst;Hoch;hardware;bob;anna;Öl;1.3.2025;2.3.2025\n",
        )
        result, rejected = run(path)
        assert (result.unused_columns, rejected) == ((), [])
        ticket = Ticket.objects.get()
        assert (ticket.title, ticket.description, ticket.resolution) == ("Tür", "klemmt", "Öl")
        assert (ticket.status, ticket.priority) == ("resolved", "high")
        assert (ticket.reporter.username, ticket.assignee.username) == ("bob", "anna")  # type: ignore[union-attr]
        assert (ticket.created_at.year, ticket.resolved_at.day) == (2025, 2)  # type: ignore[union-attr]
        run(write(tmp_path, "Title,Reporter\nDoor,bob\n", "english.csv"))
        assert Ticket.objects.filter(title="Door").exists()

    def test_a_wrong_choice_names_the_choices_in_the_readers_language(self, tmp_path: Path) -> None:
        path = write(tmp_path, "title,reporter,priority\nx,bob,brisant\n")
        with translation.override("de"):
            _result, rejected = run(path)
        assert rejected[0][1].endswith("niedrig, normal, hoch, dringend.")

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_delimiters_and_quoted_newlines(self, tmp_path: Path, delimiter: str) -> None:
        text = 'title,description,reporter\r\n"a""b","one\r\n\r\ntwo,",bob\r\n\r\n'.replace(",", delimiter)
        run(write(tmp_path, text))
        assert Ticket.objects.values_list("title", "description").get() == ('a"b', f"one\n\ntwo{delimiter}")

    @pytest.mark.parametrize(
        ("encoding", "expected"),
        [
            ("utf-8", "utf-8-sig"),
            ("utf-8-sig", "utf-8-sig"),
            ("cp1252", "cp1252"),
            ("utf-16", "utf-16"),
            ("utf-16-le", "utf-16-le"),
            ("utf-16-be", "utf-16-be"),
        ],
    )
    def test_encodings(self, tmp_path: Path, encoding: str, expected: str) -> None:
        result, rejected = run(write(tmp_path, "title,reporter\nTür klemmt – 5 €,bob\n".encode(encoding)))
        assert (result.encoding, rejected) == (expected, [])
        assert Ticket.objects.get().title == "Tür klemmt – 5 €"

    def test_a_row_with_other_bytes_is_rejected_not_garbled(self, tmp_path: Path) -> None:
        text = b"\xef\xbb\xbftitle,reporter\nT\xfcr,bob\nT\xc3\xbcr,bob\n"
        result, rejected = run(write(tmp_path, text))
        assert result.created == 1
        assert rejected == [(2, "bytes that are no text in the encoding of the file")]

    def test_text_is_cleaned(self, tmp_path: Path) -> None:
        run(write(tmp_path, "title,description,reporter\n  Odd\0  title ,a\0b,bob\n"))
        assert Ticket.objects.values_list("title", "description").get() == ("Odd title", "ab")

    def test_huge_fields(self, tmp_path: Path) -> None:
        log, too_long = "x" * 900_000, "y" * 1_100_000
        result, rejected = run(
            write(tmp_path, f"title,description,reporter\na,{log},bob\nb,{too_long},bob\nc,,bob\n")
        )
        assert (result.created, [line for line, _reason in rejected]) == (2, [3])
        assert len(Ticket.objects.get(title="a").description) == 900_000

    def test_a_quotation_mark_that_never_closes_stops_with_a_sentence(
        self, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(files, "LONGEST_RECORD", 1_000)
        monkeypatch.setattr(run_module, "BATCH_ROWS", 1)
        path = write(tmp_path, 'title,reporter\nfine,bob\n"open,bob\n' + "more,bob\n" * 200)
        with pytest.raises(ImportRefused, match=r"line 3 .* quotation mark"):
            run(path)
        assert Ticket.objects.get().title == "fine"

    def test_a_quotation_mark_left_open_makes_no_ticket_of_the_rest(self, tmp_path: Path) -> None:
        result, rejected = run(write(tmp_path, 'title,reporter,description\na,bob,x\nb,bob,"open\nc,bob,y\n'))
        assert result.created == 1
        assert [line for line, _reason in rejected] == [3]
        assert "quotation mark" in rejected[0][1]

    def test_a_quotation_mark_that_is_not_doubled_costs_its_row_only(self, tmp_path: Path) -> None:
        result, rejected = run(write(tmp_path, 'title,reporter\n"12" screen",bob\nfine,bob\n'))
        assert result.created == 1
        assert rejected == [
            (2, "a quotation mark is left open, or stands where it needs to be doubled"),
        ]

    @pytest.mark.parametrize(
        ("text", "options", "sentence"),
        [
            ('"a"b,c\n1,2\n', {}, "look at its quotation marks"),
            ("a,a\n1,2\n", {}, "same name"),
            ("title\nx\n", {"mapping": {"title": "Subject"}}, "no column Subject. Its columns are: title"),
            ("title\nx\n", {"mapping": {"titel": "title"}}, "no field titel. Fields are: title"),
            ("Subject,who\nx,bob\n", {}, "no column for: title, reporter. Its columns are: Subject, who"),
            ("title\nx\n", {}, "no column for: reporter. Its columns are: title"),
            ("title\nx\n", {"encoding": "klingon"}, "no encoding klingon"),
            ("title\nx\n", {"time_zone": "Mars/Olympus"}, "no time zone Mars/Olympus"),
        ],
    )
    def test_what_cannot_be_imported_at_all(
        self, tmp_path: Path, text: str, options: Any, sentence: str
    ) -> None:
        with pytest.raises(ImportRefused, match=sentence):
            run(write(tmp_path, text), **options)

    @pytest.mark.parametrize("text", ["", "title,reporter\n"])
    def test_nothing_in_it(self, tmp_path: Path, text: str) -> None:
        assert run(write(tmp_path, text))[0].created == 0

    def test_people_with_the_same_address(self, tmp_path: Path) -> None:
        UserFactory(username="bobby", email="bob@example.com")
        _result, rejected = run(write(tmp_path, "title,reporter\nx,bob@example.com\ny,bob\n"))
        assert rejected == [(2, "reporter: “bob@example.com” may be several people.")]

    def test_categories_are_made_only_when_told_to(self, tmp_path: Path) -> None:
        path = write(tmp_path, "title,reporter,category\nx,bob,New one\ny,bob,NEW ONE\n")
        assert run(path)[0].created == 0
        assert run(path, create_categories=True, dry_run=True)[0].created == 2
        assert not Category.objects.exists()
        assert run(path, create_categories=True)[0].created == 2
        assert Category.objects.get().name == "New one"


class TestJsonLines:
    def test_creates_and_rejects(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"title": "Tür", "reporter": "bob", "description": None, "extra": 1}),
            "",
            "{",
            json.dumps(["x"]),
            json.dumps({"title": {"de": "x"}, "reporter": "bob"}),
            json.dumps({"title": 4711, "reporter": "bob", "status": "closed"}),
            '{"title": "\\ud800", "reporter": "bob"}',
        ]
        result, rejected = run(write(tmp_path, "\n".join(lines), "tickets.jsonl"))
        assert [line for line, _reason in rejected] == [3, 4, 5]
        assert set(Ticket.objects.values_list("title", flat=True)) == {"Tür", "4711", "\ufffd"}
        assert result.created == 3

    def test_keys_by_the_labels_of_the_fields(self, tmp_path: Path) -> None:
        """As the rejected rows of a CSV file are written."""
        run(write(tmp_path, json.dumps({"Titel": "Tür", "Melder": "bob"}), "tickets.jsonl"))
        assert Ticket.objects.get().title == "Tür"

    def test_the_format_can_be_said(self, tmp_path: Path) -> None:
        path = write(tmp_path, json.dumps({"title": "x", "reporter": "bob"}), "export.dat")
        with pytest.raises(ImportRefused, match=r"end in \.csv or \.jsonl"):
            run(path)
        assert run(path, format="jsonl")[0].created == 1


class TestMoments:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2025-07-01T12:00:00Z", "2025-07-01T12:00:00+00:00"),
            ("2025-07-01T12:00:00+05:30", "2025-07-01T06:30:00+00:00"),
            ("2025-07-01 12:00", "2025-07-01T10:00:00+00:00"),
            ("2025-01-01", "2024-12-31T23:00:00+00:00"),
            ("24.12.2025 18:30", "2025-12-24T17:30:00+00:00"),
            ("1.2.2025, 8:05", "2025-02-01T07:05:00+00:00"),
            ("1.2.2025", "2025-01-31T23:00:00+00:00"),
        ],
    )
    def test_with_and_without_zone(self, text: str, expected: str) -> None:
        import zoneinfo

        assert parse_moment(text, zoneinfo.ZoneInfo("Europe/Berlin")).isoformat() == expected

    @pytest.mark.parametrize(
        "text", ["soon", "31.2.2025", "12/24/2025", "0001-01-01T00:00+14:00", "1.1.2025 25:00"]
    )
    def test_others_are_refused(self, text: str) -> None:
        with pytest.raises(ValidationError):
            parse_moment(text, UTC)


class TestResuming:
    ROWS = "title,reporter\n" + "".join(f"ticket {number},bob\n" for number in range(25))

    @pytest.fixture(autouse=True)
    def _small_batches(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(run_module, "BATCH_ROWS", 10)

    def test_goes_on_behind_the_last_stored_batch(self, tmp_path: Path, monkeypatch: Any) -> None:
        path = write(tmp_path, self.ROWS)
        original = Builder.tickets
        batches: list[int] = []

        def breaks(self: Any, rows: Any, reject: Any) -> Any:
            batches.append(len(rows))
            if len(batches) == 3:
                raise KeyboardInterrupt
            return original(self, rows, reject)

        monkeypatch.setattr(Builder, "tickets", breaks)
        with pytest.raises(KeyboardInterrupt):
            run(path)
        monkeypatch.undo()
        assert Ticket.objects.count() == 20
        result, _rejected = run(path)
        assert (result.resumed_behind, result.created) == (20, 5)
        titles = list(Ticket.objects.order_by("pk").values_list("title", flat=True))
        assert titles == [f"ticket {number}" for number in range(25)]

    def test_a_file_is_imported_once(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.ROWS)
        run(path)
        with pytest.raises(ImportRefused, match=r"25 tickets.*import it again"):
            run(write(tmp_path, self.ROWS, "copy.csv"))
        assert Ticket.objects.count() == 25
        assert run(path, again=True)[0].created == 25

    def test_after_a_run_that_created_nothing_other_options_may_be_tried(self, tmp_path: Path) -> None:
        path = write(tmp_path, "title,reporter,who\nx,nobody,bob\n")
        assert run(path)[0].created == 0
        assert run(path, mapping={"reporter": "who"})[0].created == 1

    def test_a_file_refused_for_its_columns_may_be_tried_with_other_options(self, tmp_path: Path) -> None:
        path = write(tmp_path, "Subject,reporter\nx,bob\n")
        with pytest.raises(ImportRefused):
            run(path)
        assert run(path, mapping={"title": "Subject"})[0].created == 1

    def test_a_dry_run_stores_nothing_and_checks_everything(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.ROWS + ",\n")
        result, rejected = run(path, dry_run=True)
        assert (result.created, len(rejected)) == (25, 1)
        assert not Ticket.objects.exists()
        assert not ImportRun.objects.exists()

    def test_a_batch_is_stored_with_its_progress_or_not_at_all(
        self, tmp_path: Path, transactional_db: Any, monkeypatch: Any
    ) -> None:
        path = write(tmp_path, self.ROWS)
        original = store._record_creation

        def breaks(tickets: list[Ticket]) -> None:
            original(tickets)
            if "ticket 14" in {ticket.title for ticket in tickets}:
                raise ZeroDivisionError

        monkeypatch.setattr(store, "_record_creation", breaks)
        with pytest.raises(ZeroDivisionError):
            run(path)
        monkeypatch.setattr(store, "_record_creation", original)
        assert (Ticket.objects.count(), ImportRun.objects.get().rows) == (10, 10)
        assert run(path)[0].created == 15
        assert sorted(Ticket.objects.values_list("title", flat=True)) == sorted(
            f"ticket {n}" for n in range(25)
        )
        assert TicketEvent.objects.count() == 25

    def test_a_second_import_of_the_same_file_meanwhile_is_refused(
        self, tmp_path: Path, transactional_db: Any, monkeypatch: Any
    ) -> None:
        path = write(tmp_path, self.ROWS)
        original = Builder.tickets
        inner: list[Result] = []

        def meanwhile(self: Any, rows: Any, reject: Any) -> Any:
            if not inner:
                inner.append(Result())
                inner[0] = run(path)[0]
            return original(self, rows, reject)

        monkeypatch.setattr(Builder, "tickets", meanwhile)
        with translation.override("de"), pytest.raises(ImportRefused, match="Ein anderer Import"):
            run(path)
        assert inner[0].created == Ticket.objects.count() == 25


class TestCommand:
    def call(self, path: Path, *arguments: str) -> tuple[str, str]:
        out, err = StringIO(), StringIO()
        call_command("import_tickets", path, *arguments, stdout=out, stderr=err)
        return out.getvalue(), err.getvalue()

    def test_reports(self, tmp_path: Path) -> None:
        path = write(tmp_path, "Subject,x\nTür,\n".encode("cp1252"))
        out, _err = self.call(path, "--map", "title=Subject", "--set", "reporter=bob")
        assert out == (
            "The file is not UTF-8 and was read as Windows-1252.\n"
            "Not used: x.\n"
            "1 ticket created, 0 rows rejected.\n"
        )
        assert Ticket.objects.get().title == "Tür"

    def test_bad_rows_on_standard_error_and_in_a_file_that_can_be_imported(self, tmp_path: Path) -> None:
        path = write(tmp_path, "title,reporter\nx,nobody\ny,bob\n")
        rejected = tmp_path / "rejected.jsonl"
        err = StringIO()
        with pytest.raises(CommandError, match="Not every row was imported"):
            call_command("import_tickets", path, "--rejected", str(rejected), stdout=StringIO(), stderr=err)
        assert err.getvalue() == "line 2: reporter: There is nobody “nobody”.\n"
        rejected.write_text(rejected.read_text().replace("nobody", "bob"))
        self.call(rejected)
        assert set(Ticket.objects.values_list("title", flat=True)) == {"x", "y"}

    def test_rejected_rows_are_in_the_file_before_the_import_goes_on_behind_them(
        self, tmp_path: Path, monkeypatch: Any
    ) -> None:
        path = write(tmp_path, "title,reporter\nx,nobody\ny,bob\n")
        rejected, found = tmp_path / "rejected.jsonl", []
        monkeypatch.setattr(Store, "add", lambda *_args: found.append(rejected.read_text()))
        with pytest.raises(CommandError):
            self.call(path, "--rejected", str(rejected))
        assert found == ['{"title": "x", "reporter": "nobody"}\n']

    def test_dry_run(self, tmp_path: Path) -> None:
        out, _err = self.call(write(tmp_path, "title,reporter\nx,bob\n"), "--dry-run")
        assert "1 ticket would be created" in out
        assert not Ticket.objects.exists()

    @pytest.mark.parametrize("arguments", [("--map", "title"), ("--set", "status")])
    def test_wrong_arguments(self, tmp_path: Path, arguments: tuple[str, str]) -> None:
        with pytest.raises(CommandError, match="equals sign"):
            self.call(write(tmp_path, "title\nx\n"), *arguments)

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="cannot be read"):
            self.call(tmp_path / "nothing.csv")


def test_memory_and_queries_do_not_grow_with_the_rows(
    tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    rows = "".join(f"ticket {number},bob,anna\n" for number in range(2_000))
    with django_assert_max_num_queries(40):
        run(write(tmp_path, "title,reporter,assignee\n" + rows))
    assert Ticket.objects.count() == 2_000
    assert connection.in_atomic_block
