import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickets.text import clean_text, clean_title, is_blank, within_quotes

ANY_TEXT = st.text(alphabet=st.characters())  # lone surrogates included


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_is_clean(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert "\r" not in cleaned
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")))
def test_text_that_is_fine_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@given(ANY_TEXT)
def test_a_title_is_one_line(text: str) -> None:
    title = clean_title(text)
    assert title == title.strip()
    assert "\n" not in title
    assert "  " not in title


def test_lone_surrogates_become_replacement_characters() -> None:
    assert clean_text("a\ud800b\udfff") == "a\ufffdb\ufffd"


def test_line_ends_of_forms() -> None:
    assert clean_text("a\r\nb\rc\n") == "a\nb\nc\n"


@pytest.mark.parametrize("text", ["", "   ", "\t\n", "\u200b\u200b", "\ufeff \u2060", "\u00a0\u3000"])
def test_nothing_to_be_seen_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["x", "🖨️", " . ", "مرحبا", "\u200fא"])
def test_something_to_be_seen_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "inside"), [("sagt „nein“", "sagt ‚nein‘"), ("says “no”", "says ‘no’"), ('a "b"', "a 'b'")]
)
def test_quotation_marks_within_others(text: str, inside: str) -> None:
    assert within_quotes(text) == inside
