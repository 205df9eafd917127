"""What a search could see and how its hits matched, in plain words."""

from collections.abc import Iterable, Sequence

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from retrieval.results import Coverage


def coverage_sentence(coverage: Coverage) -> str:
    """How much of the corpus can be found by meaning; empty when there are no tickets at all."""
    if not coverage.total:
        return ""
    numbers = {"missing": number_format(coverage.missing), "total": number_format(coverage.total)}
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
