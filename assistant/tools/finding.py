"""find_similar_tickets: the search, and its three outcomes in words for the model."""

from __future__ import annotations

from typing import Any

from assistant.tools.results import Result, hit_for_model, seen_hits
from assistant.tools.scope import Scope
from retrieval.results import Outcome, SearchOutcome
from retrieval.search import find_similar
from tickets.querysets import UNRESOLVED

# For the model, by reason code; what the person reads comes translated with the outcome.
REASONS = {
    "provider_off": "semantic search is switched off in this deployment",
    "no_key": "semantic search has no API key in this deployment",
    "no_package": "the package of the local embedding model is not installed",
    "key_refused": "the embedding provider refused the API key",
    "provider_misconfigured": "the embedding provider is not set up correctly",
    "provider_timeout": "the embedding provider did not answer in time",
    "provider_bad_answer": "the embedding provider sent an answer that cannot be used",
    "rate_limited": "the embedding provider accepts no more requests at the moment",
    "text_rejected": "the embedding provider rejected this text; try it with other words",
    "provider_down": "the embedding provider cannot be reached at the moment",
    "no_pgvector": "the database has no vector extension",
    "index_empty": "no ticket has been indexed yet",
    "other_model": "the index belongs to another embedding model",
}


def search(scope: Scope, arguments: dict[str, Any]) -> SearchOutcome:
    """May wait for the network: runs before the transaction of the step."""
    scope.require_view()
    include_closed = arguments.get("include_closed", True)
    return find_similar(
        arguments["query"],
        user=scope.user,
        limit=arguments.get("limit"),
        exclude=scope.judged_different(),
        statuses=None if include_closed else UNRESOLVED,
    )


def run(scope: Scope, arguments: dict[str, Any], outcome: SearchOutcome | None) -> Result:
    assert outcome is not None
    return Result(data=for_model(outcome), search=outcome, seen=seen_hits(outcome.hits))


def for_model(outcome: SearchOutcome) -> dict[str, Any]:
    coverage = outcome.coverage
    return {
        "outcome": str(outcome.outcome),
        "reason": reason(outcome),
        "coverage": {
            "indexed": coverage.indexed,
            "total": coverage.total,
            "oldest_unindexed_seconds": coverage.oldest_unindexed_seconds,
        },
        "tickets": [hit_for_model(hit) for hit in outcome.hits],
    }


def reason(outcome: SearchOutcome) -> str:
    """What the model has to know about this outcome; empty when there is nothing to add."""
    if outcome.outcome == Outcome.UNAVAILABLE:
        return _unavailable(outcome)
    missing = outcome.coverage.total - outcome.coverage.indexed
    if missing > 0:
        return f"{missing} tickets are not indexed by meaning yet; they were searched by their words only."
    return ""


def _unavailable(outcome: SearchOutcome) -> str:
    why = REASONS.get(outcome.reason_code, "it has a technical fault")
    found = "The tickets below share words or identifiers only. " if outcome.hits else ""
    return (
        f"The search by meaning is not available: {why}. {found}"
        "You have not looked for tickets that mean the same: tell the person so, never say there are none."
    )
