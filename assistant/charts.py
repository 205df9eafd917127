"""Small charts as shapes for a template: numbers in, coordinates out, no script and no inline style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 320.0, 96.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of series number `series` (0 is the lowest), with what it stands for."""

    x: float
    y: float
    width: float
    height: float
    series: int
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    bars: tuple[Bar, ...]
    top: float  # the value at the upper edge
    width: float = WIDTH
    height: float = HEIGHT


def stacked(labels: Sequence[str], series: Sequence[Sequence[float | None]]) -> Chart:
    """One bar a label; the values of the series stand on top of each other. None is drawn as nothing."""
    top = max((sum(each or 0 for each in column) for column in zip(*series, strict=True)), default=0)
    bars = []
    for index, column in enumerate(zip(*series, strict=True)):
        below = 0.0
        for number, value in enumerate(column):
            if value:
                bars.append(_bar(index, len(labels), below, value, top, number, labels[index]))
                below += value
    return Chart(tuple(bars), top)


def beside(labels: Sequence[str], low: Sequence[float | None], high: Sequence[float | None]) -> Chart:
    """A bar up to `low`, and from there a paler one up to `high`: a median and its 95th percentile."""
    rest = [
        None if h is None or each is None else max(h - each, 0) for each, h in zip(low, high, strict=True)
    ]
    return stacked(labels, [low, rest])


def _bar(index: int, count: int, below: float, value: float, top: float, series: int, label: str) -> Bar:
    slot = WIDTH / max(count, 1)
    height = value / top * HEIGHT
    y = HEIGHT - below / top * HEIGHT - height
    return Bar(_r(index * slot + slot * 0.1), _r(y), _r(slot * 0.8), _r(height), series, label)


def _r(number: float) -> float:
    return round(number, 2)
