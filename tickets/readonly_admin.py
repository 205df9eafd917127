"""What is written by the product itself may be read in the admin, and not edited."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from .paginator import BoundedPaginator


class ReadOnly:
    """For a ModelAdmin or an inline: no adding, changing or deleting, whatever the permissions."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RecordAdmin(ReadOnly, admin.ModelAdmin):
    """A long table, newest first: nothing is counted in full."""

    ordering = ("-pk",)
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
