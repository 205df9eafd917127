"""Which vectors a search compares with: those of the configured model, or the old ones while it fills in."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.utils.translation import gettext as _

from .embedders import Embedder, SearchOff, embedder_for, get_embedder, model_key
from .models import IndexState, SearchProfile
from .pgvector import missing_sentence

COUNT = """
    SELECT count(*), count(e.ticket_id), max(t.id)
    FROM tickets_ticket t
    LEFT JOIN retrieval_ticketembedding e
        ON e.model = %s AND e.ticket_id = t.id AND e.content_hash = t.content_hash
"""


_STATE = [field.attname for field in IndexState._meta.concrete_fields]
_PROFILE = [field.attname for field in SearchProfile._meta.concrete_fields]
STORED = f"""
    SELECT to_regtype('halfvec') IS NOT NULL, {", ".join(f's."{name}"' for name in _STATE)},
        {", ".join(f'p."{name}"' for name in _PROFILE)}
    FROM (SELECT 1) AS always
    LEFT JOIN (retrieval_indexstate s FULL JOIN retrieval_searchprofile p ON p.model = s.model) ON true
"""

# Where it is written down what justifies the weights of a model; the others were never measured here.
MEASURED = {"use-multilingual-3:512": "docs/retrieval-measurements.md"}


class Unavailable(Exception):
    """A search cannot compare meanings; `code` is stable, the text is for people."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Index:
    """The vectors of one model, the provider that embeds queries for them, how far they reach and how to
    judge.
    """

    embedder: Embedder
    state: IndexState
    profile: SearchProfile

    @property
    def model(self) -> str:
        return self.state.model


def usable_index() -> Index:
    """The index to search now; raises Unavailable.

    It is the configured model's from the moment that it has covered every ticket once. Until then it is the
    fullest older one whose queries can still be embedded, and else the configured model's as far as it has
    come.
    """
    try:
        embedder = get_embedder()
    except SearchOff as off:
        raise Unavailable(str(off), off.code) from off
    states, profiles = _stored()
    wanted = model_key(embedder)
    state = states.get(wanted) or counted_state(wanted)
    if state.completed_at is None:
        older = _fullest_usable(states, wanted, at_least=state.indexed)
        if older is not None:
            embedder, state = older
    if not state.indexed and not state.completed_at:
        raise _empty(states, wanted)
    return Index(embedder, state, profiles.get(state.model) or SearchProfile(model=state.model))


def profile_of(model: str) -> SearchProfile:
    """The stored profile of a model, or the default one, unsaved and uncalibrated."""
    stored = SearchProfile.objects.filter(pk=model).first()
    return stored or SearchProfile(model=model, evidence=MEASURED.get(model, ""))


def counted_state(model: str) -> IndexState:
    """The state of a model that no worker has described yet, counted now (unsaved)."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [model])
        total, indexed, last_id = cursor.fetchone()
    return IndexState(model=model, total=total, indexed=indexed, last_id=last_id or 0)


def _fullest_usable(
    states: dict[str, IndexState], wanted: str, at_least: int
) -> tuple[Embedder, IndexState] | None:
    others = [state for state in states.values() if state.model != wanted and state.indexed > at_least]
    for state in sorted(others, key=lambda state: -state.indexed):
        embedder = embedder_for(state.model)
        if embedder is not None:
            return embedder, state
    return None


def _empty(states: dict[str, IndexState], wanted: str) -> Unavailable:
    others = sorted(model for model, state in states.items() if model != wanted and state.indexed)
    if others:
        return Unavailable(
            _(
                "The tickets are indexed by another model ({others}) whose queries cannot be embedded here; "
                "the worker has to index them by {wanted} first."
            ).format(others=", ".join(others), wanted=wanted),
            "other_model",
        )
    return Unavailable(
        _("No ticket is indexed yet: start the worker (manage.py embed_worker)."), "index_empty"
    )


def _stored() -> tuple[dict[str, IndexState], dict[str, SearchProfile]]:
    """All states and profiles, and whether vectors are possible at all, in one query: every search asks."""
    with connection.cursor() as cursor:
        cursor.execute(STORED)
        rows = cursor.fetchall()
    if not rows[0][0]:
        raise Unavailable(missing_sentence(), "no_pgvector")
    cut = 1 + len(_STATE)
    alias = connection.alias
    states = (IndexState.from_db(alias, _STATE, row[1:cut]) for row in rows if row[1] is not None)
    profiles = (SearchProfile.from_db(alias, _PROFILE, row[cut:]) for row in rows if row[cut] is not None)
    return {state.model: state for state in states}, {profile.model: profile for profile in profiles}
