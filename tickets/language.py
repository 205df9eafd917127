"""In which language a text is written, as far as that can be told."""

from functools import lru_cache
from typing import Any

# Those of the multilingual sentence encoder. Among fewer languages a short text is told more surely.
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
ENOUGH = 2_000  # characters
SURE = 0.6  # "Printout fails on second floor" alone is taken for French with .57


def detect_language(text: str) -> str:
    """The ISO 639-1 code of the language of `text`, "" if it is too short or too mixed to tell."""
    language, confidence = _identifier().classify(text[:ENOUGH])
    return language if confidence >= SURE else ""


@lru_cache(maxsize=1)
def _identifier() -> Any:
    # Loaded when first needed: half a second and 40 MB that a worker or a command can do without.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LANGUAGES)
    return identifier
