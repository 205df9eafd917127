"""What tokens cost, for the estimate on the statistics page. The invoice of the provider is what counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. `cached` is what is read from the prompt cache."""

    tokens_in: float
    tokens_out: float
    cached: float

    def of(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> float:
        dollars = tokens_in * self.tokens_in + tokens_out * self.tokens_out + tokens_cached * self.cached
        return dollars / 1_000_000


# List prices of 2026-12. Writing to the cache costs a quarter more than plain input and is counted as input,
# so the estimate is a little low. A model that is missing here has no estimate.
PRICES = {
    "claude-sonnet-5-5": Price(2, 10, 0.2),
    "claude-sonnet-5": Price(2, 10, 0.2),
    "claude-opus-5-5": Price(4, 20, 0.4),
    "claude-opus-5": Price(5, 25, 0.5),
    "claude-haiku-4-5": Price(1, 5, 0.1),
}


def price_of(model: str) -> Price | None:
    """By the model's name, with or without the date of its snapshot (`-20261015`)."""
    name, _dash, date = model.rpartition("-")
    return PRICES.get(name if len(date) == 8 and date.isdecimal() else model)
