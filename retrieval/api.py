"""Search by meaning over the API: by a text, and for what is like a ticket that exists."""

from typing import Any

from django.conf import settings
from django.urls import path
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tickets.api.schema import NOT_FOUND, OK, TICKET_EXAMPLE, answer, problems
from tickets.api.serializers import TicketSummarySerializer
from tickets.api.views import ApiView
from tickets.models import Ticket

from .judging import settled_with
from .neighbours import similar_to
from .results import Band, Outcome
from .search import find_similar

LONGEST_QUERY = 10_000  # characters in an address; a longer text is a ticket's


class QuerySerializer(serializers.Serializer):
    limit = serializers.IntegerField(required=False, min_value=1, max_value=settings.SEARCH_MAX_LIMIT)
    status = serializers.MultipleChoiceField(choices=Ticket.Status.choices, required=False)


class TextQuerySerializer(QuerySerializer):
    q = serializers.CharField(max_length=LONGEST_QUERY, error_messages={"blank": _("Say what to look for.")})


class HitSerializer(serializers.Serializer):
    rank = serializers.IntegerField(help_text="1 for the best.")
    ticket = TicketSummarySerializer()
    similarity = serializers.FloatField(
        allow_null=True, help_text="Cosine of the two meanings; null if they were not compared."
    )
    score = serializers.FloatField(help_text="What orders the results. Comparable within one answer only.")
    band = serializers.ChoiceField(choices=[(band.value, band.value) for band in Band])
    matched = serializers.ListField(
        child=serializers.ChoiceField(choices=[(way, way) for way in ("meaning", "identifier", "words")]),
        help_text="In which ways it was found.",
    )
    identifiers = serializers.ListField(
        child=serializers.CharField(), help_text="Error codes, hosts, asset tags … that both name."
    )
    passage = serializers.CharField(help_text="The part that comes closest to what was asked.")


class CoverageSerializer(serializers.Serializer):
    indexed = serializers.IntegerField(help_text="Tickets that can be found by meaning.")
    total = serializers.IntegerField(help_text="All tickets.")
    oldest_unindexed_seconds = serializers.FloatField(
        allow_null=True, help_text="Since when the oldest of the others waits; null if none does."
    )


class SearchSerializer(serializers.Serializer):
    """`nothing` is only said by a search that has compared meanings. `unavailable` says that it could not,
    and why; its results share words or identifiers, and more may exist.
    """

    outcome = serializers.ChoiceField(choices=[(outcome.value, outcome.value) for outcome in Outcome])
    reason = serializers.CharField(help_text="For people; empty unless unavailable.")
    reason_code = serializers.CharField(help_text="For programs; empty unless unavailable.")
    coverage = CoverageSerializer()
    calibrated = serializers.BooleanField(help_text="Whether the bands were fitted to these tickets.")
    model = serializers.CharField(help_text="The embedding model that compared; empty if none did.")
    results = HitSerializer(source="hits", many=True)


FOUND = {
    "outcome": "found",
    "reason": "",
    "reason_code": "",
    "coverage": {"indexed": 812, "total": 812, "oldest_unindexed_seconds": None},
    "calibrated": True,
    "model": "use-multilingual-3:512",
    "results": [
        {
            "rank": 1,
            "ticket": {name: TICKET_EXAMPLE[name] for name in TicketSummarySerializer.Meta.fields},
            "similarity": 0.71,
            "score": 0.78,
            "band": "likely",
            "matched": ["meaning"],
            "identifiers": [],
            "passage": "Printout fails on second floor",
        }
    ],
}
LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": settings.SEARCH_MAX_LIMIT, "default": settings.SEARCH_LIMIT},
    description="How many results at most.",
)
STATUS = OpenApiParameter(
    "status", str, many=True, enum=Ticket.Status.values, description="Only these; repeat it for several."
)
TEXT = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY},
    required=True,
    description="What it is about, in any of the languages of the model.",
)


class SearchApiView(ApiView):
    query_serializer: type[QuerySerializer] = QuerySerializer

    def asked(self) -> dict[str, Any]:
        """What the parameters say, checked."""
        query = self.query_serializer(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return query.validated_data


class SearchView(SearchApiView):
    parameters = ("q", "limit", "status")
    query_serializer = TextQuerySerializer

    @extend_schema(
        operation_id="search",
        summary="Search tickets by meaning",
        description="By meaning across languages, by shared identifiers, by words where a vector is lacking.",
        tags=["search"],
        parameters=[TEXT, LIMIT, STATUS],
        responses={OK: answer(SearchSerializer, "One of three outcomes.", FOUND), **problems()},
    )
    def get(self, request: Request) -> Response:
        asked = self.asked()
        outcome = find_similar(
            asked["q"],
            user=self.person,
            limit=asked.get("limit"),
            statuses=asked.get("status") or None,
        )
        return Response(SearchSerializer(outcome).data)


class SimilarView(SearchApiView):
    parameters = ("limit", "status")

    @extend_schema(
        operation_id="tickets_similar",
        summary="Find tickets like this one",
        tags=["search"],
        parameters=[LIMIT, STATUS],
        responses={
            OK: answer(SearchSerializer, "One of three outcomes.", FOUND),
            **problems(NOT_FOUND),
        },
    )
    def get(self, request: Request, pk: int) -> Response:
        ticket = self.ticket()
        asked = self.asked()
        outcome = similar_to(
            ticket,
            user=self.person,
            exclude=settled_with(ticket),
            limit=asked.get("limit") or settings.SEARCH_LIMIT,
            statuses=asked.get("status") or None,
        )
        return Response(SearchSerializer(outcome).data)


urlpatterns = [
    path("search/", SearchView.as_view(), name="api-search"),
    path("tickets/<int:pk>/similar/", SimilarView.as_view(), name="api-similar"),
]
