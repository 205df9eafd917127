"""What a search could see, in plain words."""

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
