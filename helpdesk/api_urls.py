"""Everything under /api/v1/. An app may be taken out of INSTALLED_APPS; its addresses go with it."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from tickets.api.docs import DocsView, SchemaView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("tickets.api.urls")),
    path("schema/", SchemaView.as_view(), name="api-schema"),
    path("docs/", DocsView.as_view(), name="api-docs"),
]
if "retrieval" in settings.INSTALLED_APPS:
    urlpatterns.append(path("", include("retrieval.api")))
