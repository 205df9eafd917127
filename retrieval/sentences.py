"""What became of a search, what it could see and how its hits matched, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from retrieval.results import Coverage, Outcome

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

OUTCOMES: dict[str, StrOrPromise] = {
    Outcome.FOUND: gettext_lazy("found"),
    Outcome.NOTHING: gettext_lazy("found nothing"),
    Outcome.UNAVAILABLE: gettext_lazy("could not search"),
}
# Why not, in a column; the whole sentence is shown where the search was asked for.
REASONS: dict[str, StrOrPromise] = {
    "provider_off": gettext_lazy("switched off"),
    "no_key": gettext_lazy("no API key"),
    "no_package": gettext_lazy("package missing"),
    "no_credit": gettext_lazy("no credit left"),
    "key_refused": gettext_lazy("API key refused"),
    "provider_misconfigured": gettext_lazy("provider not set up correctly"),
    "provider_timeout": gettext_lazy("provider did not answer in time"),
    "provider_bad_answer": gettext_lazy("unusable answer of the provider"),
    "provider_down": gettext_lazy("provider out of reach"),
    "rate_limited": gettext_lazy("too many requests"),
    "text_rejected": gettext_lazy("text rejected"),
    "no_pgvector": gettext_lazy("database without pgvector"),
    "index_empty": gettext_lazy("nothing indexed yet"),
    "other_model": gettext_lazy("index of another model"),
    "not_permitted": gettext_lazy("not permitted"),
    "empty_query": gettext_lazy("no text"),
    "internal": gettext_lazy("internal fault"),
}


def coverage_sentence(coverage: Coverage) -> str:
    """How much of the corpus can be found by meaning; empty when there are no tickets at all."""
    if not coverage.total:
        return ""
    numbers = {
        "missing": number_format(coverage.missing, force_grouping=True),
        "total": number_format(coverage.total, force_grouping=True),
    }
    if coverage.is_complete:
        return (
            ngettext(
                "The only ticket is searchable by meaning.",
                "All %(total)s tickets are searchable by meaning.",
                coverage.total,
            )
            % numbers
        )
    sentence = (
        ngettext(
            "%(missing)s of %(total)s tickets is not searchable by meaning yet.",
            "%(missing)s of %(total)s tickets are not searchable by meaning yet.",
            coverage.missing,
        )
        % numbers
    )
    return sentence + " " + _("They are searched by their words.")


def matched_by(matched: Iterable[str], identifiers: Sequence[str], similarity: float | None) -> str:
    """ "meaning (0.83) · shared identifier: nb10234 · words"; the number is the cosine, which orders hits but
    decides nothing.
    """
    how = []
    if "meaning" in matched:
        how.append(_("meaning") + (f" ({number_format(similarity, 2)})" if similarity is not None else ""))
    if "identifier" in matched:
        label = ngettext("shared identifier", "shared identifiers", len(identifiers))
        how.append(f"{label}: {', '.join(identifiers)}" if identifiers else label)
    if "words" in matched:
        how.append(_("words"))
    return " · ".join(how)
