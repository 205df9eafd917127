"""Words as evidence: what two texts of one language share, and which language that is.

Between languages shared words say nothing (names and loan words apart), so they are only ever compared within
one; see docs/retrieval-measurements.md.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

_WORD = re.compile(r"[^\W_]+(?:[-_.'’][^\W_]+)*")

# A text of twenty words or more holds several of these, and hardly any of another language's.
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "de": "der die das und ist nicht ich ein eine zu den mit auf dem im von es sich wird bei nach wir",
        "en": "the to and is of in it not that for on this with when are was have but my be as can",
        "fr": "le la les de et des est un une que pas je dans pour en ne sur qui avec il au plus mon du",
        "es": "el los de que no en un una es se con por para las del al mi cuando como lo",
        "it": "il di che non un una per con del della sono le si ho alla nel quando",
        "pt": "o os que não em um uma com para do da se ao no na meu quando por está",
        "nl": "de het een en van niet ik is dat op te met voor zijn bij als naar wordt",
    }.items()
}
ALL_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())
ENOUGH_FUNCTION_WORDS = 3
# As if ten more texts without any of the words were there: among one or two texts rarity says little.
IMAGINED_TEXTS = 10

Words = Counter[str]


def words_of(text: str) -> Words:
    """The words of a text, lower-case, with how often each stands in it; single letters are none."""
    return Counter(word for word in _WORD.findall(text.lower()) if len(word) > 1)


def content_words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {word for word in _WORD.findall(text.lower()) if len(word) > 1 and word not in ALL_FUNCTION_WORDS}


def language_of(words: Iterable[str]) -> str:
    """The language whose function words stand in a text, "" where too few do."""
    present = set(words)
    found = {language: len(present & known) for language, known in FUNCTION_WORDS.items()}
    best = max(found, key=lambda language: found[language])
    return best if found[best] >= ENOUGH_FUNCTION_WORDS else ""


def similarities(query: Words, texts: Sequence[Words]) -> list[float]:
    """How much each text shares with the query, 0…1: the cosine of their weighted words.

    A word weighs by its rarity among these very texts: what all of them mention does not tell them apart.
    """
    rarities = _rarities(query, texts)
    weighted_query = _weighted(query, rarities)
    length = _length(weighted_query)
    return [_cosine(weighted_query, length, _weighted(text, rarities)) for text in texts]


def _rarities(query: Words, texts: Sequence[Words]) -> dict[str, float]:
    found_in = Counter(chain.from_iterable(texts))
    of_count = {
        count: math.log(1 + (len(texts) + IMAGINED_TEXTS) / (count + 0.5))
        for count in {0, *found_in.values()}
    }
    return {
        word: of_count[found_in[word]]
        for word in found_in.keys() | query.keys()
        if word not in ALL_FUNCTION_WORDS
    }


def _weighted(words: Words, rarities: Mapping[str, float]) -> dict[str, float]:
    return {
        word: rarities[word] if count == 1 else (1 + math.log(count)) * rarities[word]
        for word, count in words.items()
        if word in rarities
    }


def _length(weights: Mapping[str, float]) -> float:
    return math.hypot(*weights.values())


def _cosine(query: Mapping[str, float], length: float, text: Mapping[str, float]) -> float:
    # fsum: the order of a set must not decide between equals.
    shared = math.fsum(text[word] * query[word] for word in text.keys() & query.keys())
    return min(1.0, shared / (length * _length(text))) if shared else 0.0
