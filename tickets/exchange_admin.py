"""Import and export of tickets in the admin."""

import tempfile
from pathlib import Path
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .exporting import csv_response
from .importing import FIELDS, ImportRefused, Options, Rejected, Result, column_names, import_tickets
from .permissions import may_import

LARGEST_FILE = 5_000_000  # bytes; what a request has time for. Larger ones: manage.py import_tickets
LISTED = 200  # rejected rows on the page


class ImportForm(forms.Form):
    file = forms.FileField(label=_("File"), help_text=_("CSV or JSON Lines, up to 5 MB. It is not kept."))
    title = forms.CharField(
        label=_("Column of the title"),
        required=False,
        help_text=_("The other fields are found by the names of their columns."),
    )
    reporter_is_me = forms.BooleanField(
        label=_("Where nobody is named, I am the reporter"), required=False, initial=True
    )
    again = forms.BooleanField(label=_("Import it again, if it was imported before"), required=False)
    dry_run = forms.BooleanField(required=False, widget=forms.HiddenInput)  # the button "Check" sends it

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST_FILE:
            raise forms.ValidationError(
                gettext("Files of this size are imported with manage.py import_tickets.")
            )
        return file

    def options(self, user: User) -> Options:
        data = self.cleaned_data
        return Options(
            mapping={"title": data["title"]} if data["title"] else {},
            constants={"reporter": user.get_username()} if data["reporter_is_me"] else {},
        )


class ExchangeAdmin(admin.ModelAdmin):
    """For the admin of tickets: the action that exports, the page that imports."""

    actions: Any = ("export_as_csv",)
    change_list_template = "admin/tickets/ticket/exchange_list.html"

    @admin.action(description=_("Export as CSV"), permissions=["view"])
    def export_as_csv(self, request: HttpRequest, tickets: Any) -> StreamingHttpResponse:
        return csv_response(tickets, request.user)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.import_view)
        return [path("import/", view, name="tickets_ticket_import"), *super().get_urls()]

    def changelist_view(self, request: Any, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(
            request, {"may_import": may_import(request.user)} | (extra_context or {})
        )

    def import_view(self, request: Any) -> HttpResponse:
        if not may_import(request.user):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Import tickets"),
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "columns": [column_names(name) for name in FIELDS],
            "result": None,
        }
        if request.method == "POST" and form.is_valid():
            context |= self._import(form, request.user)
        return TemplateResponse(request, "admin/tickets/ticket/import.html", context)

    def _import(self, form: ImportForm, user: User) -> dict[str, Any]:
        rejected: list[Rejected] = []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / Path(form.cleaned_data["file"].name).name
            file.write_bytes(form.cleaned_data["file"].read())
            try:
                result = self._run(file, form, user, rejected)
            except ImportRefused as refused:
                form.add_error("file", str(refused))
                return {}
        dry_run = form.cleaned_data["dry_run"]
        return {
            "result": result,
            "counts": result.counts(dry_run=dry_run),
            "dry_run": dry_run,
            "rejected": rejected[:LISTED],
            "more": max(len(rejected) - LISTED, 0),
        }

    def _run(self, file: Path, form: ImportForm, user: User, rejected: list[Rejected]) -> Result:
        return import_tickets(
            file,
            form.options(user),
            dry_run=form.cleaned_data["dry_run"],
            again=form.cleaned_data["again"],
            on_rejected=rejected.append,
        )
