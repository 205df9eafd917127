"""The page "Assistant" for supervisors: figures a day, small charts, and how good the suggestions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from assistant import charts
from assistant.numbers import grouped
from assistant.statistics import ENOUGH_TURNS, Day, Report, report, suspicious, weekly_precision

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SPANS = (7, 30, 90)  # days
WEEKS = 12

LABELS: dict[str, StrOrPromise] = {
    "done": _("answered"),
    "failed": _("failed"),
    "interrupted": _("interrupted"),
    "first_token_ms": _("time to the first token"),
    "total_ms": _("time of the whole turn"),
    "tokens_in": _("tokens in"),
    "tokens_out": _("tokens out"),
    "tokens_cached": _("tokens from cache"),
    "links_removed": _("links removed"),
    "found": _("searches that found something"),
    "nothing": _("searches that found nothing"),
    "unavailable": _("searches that were unavailable"),
    "created": _("tickets created"),
    "avoided": _("duplicates avoided"),
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart with its heading, the figure for the whole span, and the names of its series."""

    name: str
    heading: str
    figure: str
    series: list[StrOrPromise]
    chart: charts.Chart
    top: str


class StatisticsAdmin(admin.ModelAdmin):
    """For the admin of turns."""

    change_list_template = "admin/assistant/turn/list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.statistics_view)
        return [path("statistics/", view, name="assistant_statistics"), *super().get_urls()]

    def statistics_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        span = _span(request.GET.get("days", ""))
        found = report(span)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Assistant"),
            "opts": self.opts,
            "span": span,
            "spans": SPANS,
            "report": found,
            "panels": _panels(found),
            "days": list(reversed(found.days)),
            "suspicious": _suspects(),
            "enough": ENOUGH_TURNS,
            "weeks": weekly_precision(WEEKS),
            "precision": _precision(),
        }
        return TemplateResponse(request, "admin/assistant/turn/statistics.html", context)


def _span(given: str) -> int:
    return int(given) if given in {str(span) for span in SPANS} else 30


def _suspects() -> list[StrOrPromise]:
    names = suspicious()
    return [label for name, label in LABELS.items() if name in names]


def _panels(found: Report) -> list[Panel]:
    total = found.total
    panels = [
        _stacked(found, "turns", gettext("Turns"), grouped(total.turns), ["done", "interrupted", "failed"]),
        _percentiles(found, "first_token", gettext("First token")),
        _percentiles(found, "total", gettext("Whole turn")),
        _stacked(
            found,
            "tokens",
            gettext("Tokens"),
            grouped(total.tokens),
            ["tokens_in", "tokens_cached", "tokens_out"],
        ),
        _stacked(
            found,
            "searches",
            gettext("Searches"),
            grouped(total.searches),
            ["found", "nothing", "unavailable"],
        ),
        _stacked(
            found,
            "tickets",
            gettext("Tickets created, duplicates avoided"),
            f"{grouped(total.created)} / {grouped(total.avoided)}",
            ["created", "avoided"],
        ),
    ]
    if found.has_cost:
        panels.insert(4, _costs(found))
    return panels


def _stacked(found: Report, name: str, heading: str, figure: str, series: list[str]) -> Panel:
    labels = [_label(day, series) for day in found.days]
    chart = charts.stacked(labels, [[getattr(day, each) for day in found.days] for each in series])
    return Panel(name, heading, figure, [LABELS[each] for each in series], chart, grouped(chart.top))


def _percentiles(found: Report, name: str, heading: str) -> Panel:
    def of(day: Day, which: str) -> float | None:
        value: float | None = getattr(day, f"{name}_{which}")
        return value

    labels = [f"{_date(day)}: {seconds(of(day, 'median'))} / {seconds(of(day, '95'))}" for day in found.days]
    columns: Sequence[Sequence[float | None]] = [
        [of(day, each) for day in found.days] for each in ("median", "95")
    ]
    chart = charts.beside(labels, *columns)
    figure = f"{seconds(of(found.total, 'median'))} / {seconds(of(found.total, '95'))}"
    return Panel(
        name, heading, figure, [gettext("median"), gettext("95 % are faster than")], chart, seconds(chart.top)
    )


def _costs(found: Report) -> Panel:
    labels = [f"{_date(day)}: {dollars(day.cost)}" for day in found.days]
    chart = charts.stacked(labels, [[day.cost for day in found.days]])
    return Panel(
        "cost",
        gettext("Estimated cost"),
        dollars(found.total.cost),
        [gettext("US dollars")],
        chart,
        dollars(chart.top),
    )


def _precision() -> Panel | None:
    weeks = weekly_precision(WEEKS)
    if not weeks:
        return None
    labels = [f"{date_format(week.begin, 'SHORT_DATE_FORMAT')}: {percent(week.precision)}" for week in weeks]
    shares = [[week.precision for week in weeks], [1 - week.precision for week in weeks]]
    same, judged = sum(week.same for week in weeks), sum(week.judged for week in weeks)
    chart = charts.stacked(labels, shares)
    names: list[StrOrPromise] = [gettext("the same"), gettext("related or different")]
    return Panel("precision", gettext("Precision"), percent(same / judged), names, chart, percent(1))


def _label(day: Day, series: list[str]) -> str:
    parts = (f"{LABELS[name]} {grouped(getattr(day, name))}" for name in series)
    return f"{_date(day)}: {', '.join(parts)}"


def _date(day: Day) -> str:
    return date_format(day.day, "SHORT_DATE_FORMAT")


def seconds(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{number_format(milliseconds / 1000, 1)} s"


def dollars(amount: float | None) -> str:
    return "–" if amount is None else f"{number_format(amount, 2)} $"


def percent(share: float) -> str:
    return f"{round(share * 100)} %"
