"""Properties of the ranking, and what each part is for."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking import (
    Candidate,
    RankedHit,
    Weights,
    is_likely,
    is_worth_reading,
    rank,
    rarity,
    words_help,
)

TOTAL = 1_000
FREQUENCIES = {"nb10234": 1, "0x80070005": 3, "http": 180}
LONG_QUERY = (
    "The planning client crashes during the export of the monthly report when the archive folder is on a "
    "network drive and the file name is longer than sixty characters, but not with short names"
)

cosines = st.none() | st.floats(-1, 1, allow_nan=False)
candidates = st.builds(
    Candidate,
    ticket_id=st.integers(1, 10_000),
    cosine=cosines,
    identifiers=st.lists(st.sampled_from(sorted(FREQUENCIES)), unique=True).map(tuple),
    text=st.sampled_from(
        ["", "Drucker druckt nicht", LONG_QUERY, "the export crashes on a network drive and it is slow"]
    ),
)
pools = st.lists(candidates, max_size=15, unique_by=lambda one: one.ticket_id)
queries = st.sampled_from(["NB-10234 0x80070005", "Drucker druckt nicht", LONG_QUERY, ""])


def ranked(pool: list[Candidate], query: str = "NB-10234", weights: Weights | None = None) -> list[RankedHit]:
    return rank(pool, query=query, frequencies=FREQUENCIES, total=TOTAL, weights=weights or Weights())


def order(pool: list[Candidate], query: str = "NB-10234") -> list[int]:
    return [hit.ticket_id for hit in ranked(pool, query)]


@given(pools, queries)
def test_scores_lie_between_0_and_1_and_fall(pool: list[Candidate], query: str) -> None:
    scores = [hit.score for hit in ranked(pool, query)]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(pools, queries, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    pool: list[Candidate], query: str, shuffler: random.Random
) -> None:
    shuffled = shuffler.sample(pool, len(pool))
    assert order(pool, query) == order(shuffled, query)


@given(pools)
def test_every_candidate_is_ranked_once(pool: list[Candidate]) -> None:
    assert sorted(order(pool)) == sorted(one.ticket_id for one in pool)


@given(pools, candidates)
def test_sharing_a_rare_identifier_never_ranks_lower(pool: list[Candidate], one: Candidate) -> None:
    others = [other for other in pool if other.ticket_id != one.ticket_id]
    without = Candidate(one.ticket_id, one.cosine, (), one.text)
    sharing = Candidate(one.ticket_id, one.cosine, ("nb10234",), one.text)
    assert order([*others, sharing]).index(one.ticket_id) <= order([*others, without]).index(one.ticket_id)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_where_nothing_else_speaks_the_cosine_orders(values: list[float]) -> None:
    pool = [Candidate(number, value) for number, value in enumerate(values)]
    hits = rank(pool, query="Drucker", frequencies={}, total=TOTAL)
    assert [hit.ticket_id for hit in hits] == sorted(range(len(values)), key=lambda n: (-values[n], n))
    assert [hit.score for hit in hits] == sorted(values, reverse=True)


def test_of_two_twins_the_one_with_the_code_comes_first() -> None:
    assert order([Candidate(1, 0.62), Candidate(2, 0.55, ("nb10234",))]) == [2, 1]


def test_a_code_does_not_lift_a_ticket_about_something_else_over_a_near_twin_in_meaning() -> None:
    assert order([Candidate(1, 0.75), Candidate(2, 0.15, ("nb10234",))]) == [1, 2]


def test_a_common_identifier_hardly_counts() -> None:
    frequencies = {"windows11": 180}
    pool = [Candidate(1, 0.6), Candidate(2, 0.5, ("windows11",))]
    assert [hit.ticket_id for hit in rank(pool, query="", frequencies=frequencies, total=200)] == [1, 2]


def test_among_two_codes_the_rare_one_decides() -> None:
    pool = [Candidate(1, 0.5, ("http",)), Candidate(2, 0.5, ("nb10234",))]
    assert order(pool) == [2, 1]


@pytest.mark.parametrize(
    ("count", "total", "expected"), [(1, 1000, 1.0), (1000, 1000, 0.0), (0, 0, 1.0), (1, 1, 1.0)]
)
def test_rarity(count: int, total: int, expected: float) -> None:
    assert rarity(count, total) == pytest.approx(expected)


def test_rarity_falls_with_every_holder() -> None:
    values = [rarity(count, 500) for count in range(1, 501)]
    assert values == sorted(values, reverse=True)


def test_words_are_compared_for_long_queries_in_a_known_language_only() -> None:
    assert words_help(LONG_QUERY)
    assert not words_help("the printer is not working")
    assert not words_help(" ".join(f"qwx{number}zz" for number in range(40)))


def test_words_decide_between_equals_of_one_language() -> None:
    same = Candidate(1, 0.5, (), "The monthly report: export crashes when the folder is on a network drive")
    other = Candidate(
        2, 0.5, (), "The mouse pointer of my computer is not where it was when I log in to the portal"
    )
    assert order([other, same], LONG_QUERY) == [1, 2]


def test_a_ticket_in_another_language_neither_gains_nor_loses_by_words() -> None:
    english = [
        Candidate(
            number, 0.3 + number / 100, (), "The mouse of my computer is not where it was when I log in to it"
        )
        for number in range(1, 8)
    ]
    german = Candidate(
        99, 0.5, (), "Der Planungsclient stürzt beim Export ab, wenn der Ordner auf dem Netzlaufwerk ist"
    )
    assert order([*english, german], LONG_QUERY)[0] == 99


def test_a_ticket_that_waits_for_its_vector_is_judged_by_its_words() -> None:
    pool = [Candidate(1, 0.4), Candidate(2, None, (), "Drucker im Lager druckt nicht")]
    hits = rank(pool, query="Drucker im Lager druckt nicht", frequencies={}, total=TOTAL)
    assert hits[0].ticket_id == 2
    assert hits[0].matched == ("words",)
    assert hits[0].cosine is None


def test_equal_scores_keep_the_older_ticket_first() -> None:
    assert order([Candidate(7, 0.5), Candidate(3, 0.5)]) == [3, 7]


def hit(cosine: float | None, identifiers: tuple[str, ...] = (), words: float = 0.0) -> RankedHit:
    return RankedHit(1, 0.5, cosine, (), identifiers, words)


@pytest.mark.parametrize(
    ("one", "worth_reading", "likely"),
    [
        (hit(0.7), True, True),
        (hit(0.4), True, False),
        (hit(0.2), False, False),
        (hit(0.2, ("nb10234",)), True, False),
        (hit(0.4, ("nb10234",)), True, True),
        (hit(None, (), 0.5), True, False),
        (hit(None, (), 0.01), False, False),
        (hit(None, ("nb10234",)), True, False),
    ],
)
def test_floor_and_likely(one: RankedHit, worth_reading: bool, likely: bool) -> None:
    assert is_worth_reading(one, 0.3) is worth_reading
    assert is_likely(one, 0.3, 0.6) is likely


def test_without_calibration_everything_is_shown_and_nothing_called_likely() -> None:
    assert is_worth_reading(hit(-0.5), None)
    assert not is_likely(hit(0.99, ("nb10234",)), None, None)
