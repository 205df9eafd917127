"""The OpenAPI document and the page to browse it, without anything from elsewhere and without inline code."""

from functools import cache
from typing import Any

from django.utils import translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from .schema import hidden


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, in English: it is for programs and those who write them. Made once a process."""
    with translation.override("en"):
        return SchemaGenerator().get_schema(request=None, public=True)


@hidden
class SchemaView(SpectacularAPIView):
    """Anybody may read it; it says nothing about the tickets. Asking for it costs no query."""

    authentication_classes: list[Any] = []
    throttle_classes: list[Any] = []

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(document())


@hidden
class DocsView(SpectacularSwaggerSplitView):
    template_name = "api/docs.html"
    authentication_classes: list[Any] = []
    throttle_classes: list[Any] = []
    url_name = "api-schema"
