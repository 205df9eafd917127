"""How the assistant fares, day by day, from what each turn has left behind. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Aggregate, Count, FloatField, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncWeek
from django.utils import timezone

from assistant.models import ConversationTicket, ToolCall, Turn
from assistant.prices import price_of
from retrieval.models import Verdict

ENOUGH_TURNS = 50  # from here on a figure that has never changed is suspicious


class Percentile(Aggregate):
    """`Percentile("total_ms", 0.95)`: interpolated between the two nearest values."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(fraction)s) WITHIN GROUP (ORDER BY %(expressions)s)"

    def __init__(self, expression: str, fraction: float, **extra: Any) -> None:
        super().__init__(expression, fraction=float(fraction), output_field=FloatField(), **extra)


@dataclass(slots=True)
class Day:
    """The figures of one day. Times are milliseconds; None where nothing was measured."""

    day: date
    turns: int = 0
    done: int = 0
    failed: int = 0
    interrupted: int = 0
    first_token_median: float | None = None
    first_token_95: float | None = None
    total_median: float | None = None
    total_95: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None  # US dollars; None if no model of the day has a price
    found: int = 0
    nothing: int = 0
    unavailable: int = 0
    created: int = 0
    avoided: int = 0
    links_removed: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out + self.tokens_cached

    @property
    def searches(self) -> int:
        return self.found + self.nothing + self.unavailable


@dataclass(slots=True)
class Report:
    days: list[Day]  # every day of the span, the oldest first
    total: Day
    unpriced: list[str] = field(default_factory=list)  # models without a price
    has_cost: bool = False


def report(days: int) -> Report:
    """The last `days` days up to today, in the active time zone."""
    today = timezone.localdate()
    first = today - timedelta(days=days - 1)
    since = timezone.make_aware(datetime.combine(first, time()))
    by_day = {first + timedelta(days=n): Day(first + timedelta(days=n)) for n in range(days)}
    turns = Turn.objects.filter(created_at__gte=since)
    _fill(by_day, _by_day(turns, "created_at").annotate(**_turn_figures()))
    _fill(by_day, _by_day(_calls(since), "created_at").annotate(**_call_figures()))
    _fill(by_day, _by_day(_avoided(since), "judged_at").annotate(avoided=Count("pk")))
    unpriced = _add_costs(by_day, turns)
    listed = list(by_day.values())
    total = _total(listed, turns)
    return Report(listed, total, unpriced, has_cost=total.cost is not None)


def _by_day(rows: QuerySet[Any], moment: str) -> QuerySet[Any, dict[str, Any]]:
    return rows.order_by().annotate(day=TruncDate(moment)).values("day")


def _fill(by_day: dict[date, Day], rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        day = by_day.get(row.pop("day"))
        if day is not None:  # a clock that is ahead
            _set(day, row)


def _set(day: Day, figures: dict[str, Any]) -> None:
    for name, value in figures.items():
        setattr(day, name, value)


def _turn_figures() -> dict[str, Aggregate]:
    finished = {status: Count("pk", filter=Q(status=status)) for status in ("done", "failed", "interrupted")}
    sums = {name: Sum(name) for name in ("tokens_in", "tokens_out", "tokens_cached", "links_removed")}
    times = {
        f"{short}_{name}": Percentile(f"{short}_ms", fraction)
        for short in ("first_token", "total")
        for name, fraction in (("median", 0.5), ("95", 0.95))
    }
    return {"turns": Count("pk"), **finished, **sums, **times}


def _calls(since: datetime) -> QuerySet[ToolCall]:
    """By the index on the turns' time; calls have none of their own."""
    return ToolCall.objects.filter(turn__created_at__gte=since, created_at__gte=since)


def _call_figures() -> dict[str, Aggregate]:
    outcomes = ("found", "nothing", "unavailable")
    searches = {outcome: Count("pk", filter=Q(outcome=outcome)) for outcome in outcomes}
    return {**searches, "created": Count("pk", filter=Q(creates=True, is_error=False))}


def _avoided(since: datetime) -> QuerySet[ConversationTicket]:
    """Problems that became a comment on an existing ticket instead of a second one."""
    return ConversationTicket.objects.filter(judged_at__gte=since, judgement="same")


def _add_costs(by_day: dict[date, Day], turns: QuerySet[Turn]) -> list[str]:
    """Returns the models that used tokens but have no price."""
    unpriced = set()
    names = ("tokens_in", "tokens_out", "tokens_cached")
    days = turns.order_by().annotate(day=TruncDate("created_at")).values("day", "model")
    rows: Iterable[dict[str, Any]] = days.annotate(**{f"sum_{name}": Sum(name) for name in names})  # type: ignore[assignment]
    for row in rows:
        tokens = [row[f"sum_{name}"] for name in names]
        price, day = price_of(row["model"]), by_day.get(row["day"])
        if price is not None and day is not None:
            day.cost = (day.cost or 0.0) + price.of(*tokens)
        elif any(tokens):
            unpriced.add(row["model"])
    return sorted(unpriced)


def _total(days: list[Day], turns: QuerySet[Turn]) -> Day:
    """The whole span: sums of the days, and percentiles over all turns (those of days cannot be added)."""
    total = Day(days[0].day)
    _set(total, turns.aggregate(**_turn_figures()))
    for name in ("tokens_in", "tokens_out", "tokens_cached", "links_removed"):
        setattr(total, name, getattr(total, name) or 0)
    for name in ("found", "nothing", "unavailable", "created", "avoided"):
        setattr(total, name, sum(getattr(day, name) for day in days))
    costs = [day.cost for day in days if day.cost is not None]
    total.cost = sum(costs) if costs else None
    return total


# -- figures that never change ----------------------------------------------------------------------------


MEASURED = ("first_token_ms", "total_ms", "tokens_in", "tokens_out", "tokens_cached", "links_removed")


def suspicious() -> set[str]:
    """Names of figures that have been the same since the beginning, over `ENOUGH_TURNS` turns or more.

    A figure that cannot move is probably not measured at all: nobody would notice that it is broken.
    """
    ended = Turn.objects.exclude(status__in=Turn.ACTIVE).order_by()
    bounds = {f"{end.name}_{name}": end(name) for name in MEASURED for end in (Min, Max)}
    counts = {status: Count("pk", filter=Q(status=status)) for status in ("done", "failed", "interrupted")}
    seen = ended.aggregate(turns=Count("pk"), **bounds, **counts)
    if seen["turns"] < ENOUGH_TURNS:
        return set()
    still = {name for name in MEASURED if seen[f"Min_{name}"] == seen[f"Max_{name}"]}
    statuses = {status for status in counts if seen[status] in (0, seen["turns"])}
    return still | statuses | _never_counted()


def _never_counted() -> set[str]:
    events: dict[str, QuerySet[Any]] = {
        **{name: ToolCall.objects.filter(outcome=name) for name in ("found", "nothing", "unavailable")},
        "created": ToolCall.objects.filter(creates=True),
        "avoided": ConversationTicket.objects.filter(judgement="same"),
    }
    return {name for name, rows in events.items() if not rows.exists()}


# -- verdicts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Week:
    """What people said about suggestions in one week. Only what is above the floor is ever suggested."""

    begin: date
    same: int
    related: int
    different: int

    @property
    def judged(self) -> int:
        return self.same + self.related + self.different

    @property
    def precision(self) -> float:
        """Share of the judged suggestions that were the same problem, 0 to 1."""
        return self.same / self.judged if self.judged else 0.0


def weekly_precision(weeks: int) -> list[Week]:
    """The last `weeks` weeks in which somebody judged, the oldest first."""
    since = timezone.now() - timedelta(weeks=weeks)
    judgements = {name: Count("pk", filter=Q(judgement=name)) for name in ("same", "related", "different")}
    suggested = Verdict.objects.filter(created_at__gte=since, suggested=True)
    recent = suggested.annotate(week=TruncWeek("created_at"))
    rows = recent.values("week").annotate(**judgements).order_by("week")
    return [Week(week.date(), *counts) for week, *counts in rows.values_list("week", *judgements)]
