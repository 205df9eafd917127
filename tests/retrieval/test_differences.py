"""Marking what differs between two texts."""

from retrieval.differences import MOST_CHARS, Comparison, compare_texts


def marked(comparison: Comparison) -> tuple[list[str], list[str]]:
    return tuple(  # type: ignore[return-value]
        [piece.text for piece in side if piece.differs] for side in (comparison.left, comparison.right)
    )


def test_marks_whole_words_on_both_sides() -> None:
    compared = compare_texts("The printer on floor 2 is broken.", "The printer on floor 3 is still broken.")
    assert marked(compared) == (["2"], ["3", "still"])


def test_nothing_is_lost() -> None:
    left, right = "one two\n three", "one  two three four "
    compared = compare_texts(left, right)
    assert "".join(piece.text for piece in compared.left) == left
    assert "".join(piece.text for piece in compared.right) == right


def test_case_is_no_difference() -> None:
    assert marked(compare_texts("VPN Down", "vpn down")) == ([], [])


def test_texts_in_two_languages_are_not_marked_all_over() -> None:
    compared = compare_texts("The printer does not print anything.", "Es kommt kein Blatt heraus!")
    assert not compared.alike
    assert marked(compared) == ([], [])


def test_long_texts_are_cut_and_say_so() -> None:
    compared = compare_texts("word " * 20_000, "word")
    assert compared.cut
    assert len("".join(piece.text for piece in compared.left)) <= MOST_CHARS


def test_nothing_beside_nothing() -> None:
    assert compare_texts("", "") == Comparison([], [], alike=True, cut=False)
