"""Which part of a ticket is shown for a query, and what of a long text is embedded."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.condense import LONG_FROM, VERSION, condensed, is_machine_output, title_of
from retrieval.documents import embeddable
from retrieval.passages import PASSAGE_CHARS, best_passage
from retrieval.words import language_of, similarities, words_of

PROBLEM = (
    "Since this morning the label printer in the warehouse prints empty labels, although the roll is new. "
    * 3
)
LOG = "\n".join(
    f"2026-03-12 10:11:{second:02d}.123 [error] core: 0x{second * 7919:08x} code {second}, pid {second}17"
    for second in range(40)
)
TRACE = "\n".join(f"    at org.spool.Queue.run(Queue.java:{line})" for line in range(100, 120))


def test_the_sentence_with_the_shared_words_is_shown() -> None:
    text = (
        "Good morning. The coffee was cold. The scanner on the third floor does not find the folder. Thanks!"
    )
    assert best_passage("scanner cannot find folder", "Help", text).startswith(
        "The scanner on the third floor"
    )


def test_a_shared_code_outweighs_words() -> None:
    text = "The update of the notebook fails.\nNotebook shows code 0x8007-0005 instead."
    passage = best_passage("update of the notebook fails 0x80070005", "Update", text, ["0x80070005"])
    assert passage.startswith("Notebook shows")


def test_across_languages_it_is_the_first_sentence_that_says_something() -> None:
    text = f"Hello team,\n{LOG.splitlines()[0]}\nNothing comes out of the printer."
    assert best_passage("Drucker reagiert nicht", "Printer", text) == "Nothing comes out of the printer."


def test_a_word_within_another_one_is_not_shared() -> None:
    text = "Hello team,\nNothing comes out of the printer.\nThe report is due today."
    assert best_passage("Port 80 is closed", "Printer", text).startswith("Nothing comes out")


def test_a_code_that_only_the_title_names_decides_nothing() -> None:
    text = "Hello team,\nNothing comes out of the printer."
    assert best_passage("PRN-4711", "PRN-4711", text, ["prn4711"]) == "Nothing comes out of the printer."


def test_without_a_description_it_is_the_title() -> None:
    assert best_passage("Drucker", "Printer is dead", "  \n ") == "Printer is dead"


@given(st.text(max_size=200), st.text(max_size=600), st.lists(st.text(min_size=1, max_size=5), max_size=3))
def test_a_passage_is_short_and_stands_in_the_ticket(query: str, text: str, identifiers: list[str]) -> None:
    passage = best_passage(query, "Title", text, identifiers)
    assert len(passage) <= PASSAGE_CHARS
    assert passage.removesuffix("…") in text or passage == "Title"


def test_short_texts_are_embedded_as_they_are() -> None:
    text = f"Printer\n{LOG}"[: LONG_FROM - 1]
    assert condensed(text) == (text, len(text))


@pytest.mark.parametrize("noise", [LOG, TRACE])
def test_machine_output_is_left_out_of_long_texts(noise: str) -> None:
    text, kept = condensed(f"Label printer prints empty labels\n{PROBLEM}\n{noise}\nPlease help.")
    assert noise.splitlines()[3] not in text
    assert "roll is new" in text
    assert "Please help." in text
    assert kept < len(PROBLEM) + 100


def test_what_was_left_out_is_counted() -> None:
    document = embeddable("Label printer prints empty labels", f"{PROBLEM}\n{LOG}", 100_000, dilutes=True)
    assert document.embedded_chars < document.total_chars - len(LOG) // 2


def test_the_title_makes_about_a_quarter_of_a_long_text() -> None:
    title = "Label printer prints empty labels"
    text, _ = condensed(f"{title}\n{PROBLEM * 3}")
    assert 0.2 < text.count(title) * len(title) / len(text) < 0.35


def test_a_text_of_nothing_but_machine_output_keeps_its_beginning() -> None:
    text, _ = condensed(LOG)
    assert text.strip()


def test_a_title_that_the_description_repeats_is_embedded_once() -> None:
    document = embeddable("Printer is dead", "Printer is dead since Monday", 100_000, dilutes=True)
    assert document.text == "Printer is dead since Monday"
    assert document.embedded_chars == document.total_chars


def test_models_that_do_not_dilute_read_everything() -> None:
    document = embeddable("Printer", f"{PROBLEM}\n{LOG}", 100_000)
    assert document.text == f"Printer\n{PROBLEM}\n{LOG}"


@pytest.mark.parametrize(
    "greeting", ["Hallo zusammen, ich habe da", "Dear support team, my", "Bonjour, j'ai un"]
)
def test_a_greeting_is_no_title(greeting: str) -> None:
    assert title_of(f"{greeting} {PROBLEM}") == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Der Drucker im dritten Stock reagiert nicht mehr.", False),
        ("L'imprimante de l'accueil n'imprime plus rien.", False),
        ("印刷キューにジョブが残ったまま出力されません、再起動しても直りませんでした。", False),
        ("Fehler 0x0000011b beim Verbinden mit dem Druckserver", False),
        ("    at java.base/java.lang.Thread.run(Thread.java:833)", True),
        ('  File "/usr/lib/python3/site.py", line 12, in main', True),
        ("[  812.331] RIP: 0010:_raw_spin_lock+0x1a/0x30", True),
        ("Jan 12 03:12:33 srv01 sshd[567]: port 4711 ssh2", True),
    ],
)
def test_what_machine_output_looks_like(line: str, expected: bool) -> None:
    assert is_machine_output(line) is expected


@given(st.text(max_size=3_000))
def test_condensing_never_fails_and_never_empties(text: str) -> None:
    result, kept = condensed(text)
    assert bool(result.strip()) == bool(text.strip())
    assert kept <= len(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Drucker ist aus und ich kann mit dem Rechner nicht drucken", "de"),
        ("The printer is off and I can not print from the computer", "en"),
        ("Le vidéoprojecteur de la salle est éteint et je ne peux pas le démarrer", "fr"),
        ("0x80070005", ""),
    ],
)
def test_languages_by_their_function_words(text: str, language: str) -> None:
    assert language_of(words_of(text)) == language


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=5))
def test_word_similarities_lie_between_0_and_1(query: str, texts: list[str]) -> None:
    assert all(0 <= value <= 1 for value in similarities(words_of(query), [words_of(text) for text in texts]))


def test_equal_texts_share_all_words() -> None:
    words = words_of("label printer prints empty labels")
    assert similarities(words, [words, words_of("something else")]) == pytest.approx([1.0, 0.0])


def test_what_is_kept_of_a_text_changes_only_with_its_version() -> None:
    texts = [
        f"Label printer prints empty labels\n{PROBLEM}\n{LOG}\n{TRACE}\nPlease help.",
        f"Hello team,\n{PROBLEM}\n{LOG}",
        f"{PROBLEM}{LOG}".replace("\n", " "),
        LOG,
    ]
    kept = "\0".join(condensed(text)[0] for text in texts)
    assert (VERSION, sha256(kept.encode()).hexdigest()[:16]) == (1, "7ad789a61e94ceb5"), (
        "the stored vectors were made from other texts: raise condense.VERSION"
    )
