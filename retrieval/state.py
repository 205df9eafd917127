"""Whether search by meaning works right now, as one sentence for the pages that depend on it."""

from django.utils.translation import gettext as _

from retrieval.embedders import SearchOff, get_embedder, model_key
from retrieval.models import IndexState
from retrieval.results import Coverage
from retrieval.sentences import coverage_sentence


def searches_by_meaning() -> bool:
    """Whether a search by meaning can find anything: there is a provider, and tickets that it has indexed."""
    try:
        key = model_key(get_embedder())
    except SearchOff:
        return False
    return IndexState.objects.filter(pk=key, indexed__gt=0).exists()


def search_state() -> str:
    """Empty while every ticket is searchable by meaning; else what is missing and why. One query at most."""
    try:
        embedder = get_embedder()
    except SearchOff as off:
        return str(off)
    state = IndexState.objects.filter(pk=model_key(embedder)).first()
    if state is None:
        return _("No ticket is searchable by meaning yet: the worker (manage.py embed_worker) has not run.")
    coverage = Coverage(state.indexed, state.total)
    return "" if coverage.is_complete else coverage_sentence(coverage)
