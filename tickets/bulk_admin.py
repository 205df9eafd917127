"""Changing and merging many tickets in the admin: choose, say what, watch it being done, read the report."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from .bulk import MOST, advance, begin, unfinished
from .forms import named_ticket
from .history import field_label, value_label
from .merge_report import solved_already
from .models import BulkRun, Category, Ticket, Via, readable

LISTED = 500  # tickets of each kind named in the report
LEAVE = ("", _("leave as it is"))
NOBODY = "none"


class SelectionField(forms.CharField):
    """Ticket ids in one hidden field: Django refuses forms of more than a thousand fields."""

    widget = forms.HiddenInput

    def clean(self, value: Any) -> list[int]:
        ids = [part for part in str(value or "").split(",") if part]
        if not ids or len(ids) > MOST or not all(part.isdecimal() and len(part) < 19 for part in ids):
            raise ValidationError(gettext("The choice of tickets was lost. Please choose them again."))
        return [int(part) for part in ids]


class ChangeManyForm(forms.Form):
    """What to set in all of them. A field left alone changes nothing."""

    ids = SelectionField()
    status = forms.ChoiceField(label=_("Status"), required=False)
    priority = forms.ChoiceField(label=_("Priority"), required=False)
    assignee = forms.ChoiceField(label=_("Assignee"), required=False)
    category = forms.ChoiceField(label=_("Category"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        staff = User.objects.filter(is_staff=True, is_active=True).order_by("first_name", "username")
        self._offer("status", Ticket.Status.choices)
        self._offer("priority", Ticket.Priority.choices)
        self._offer("assignee", [(NOBODY, _("nobody")), *((str(one.pk), readable(one)) for one in staff)])
        categories = [(str(one.pk), one.label) for one in Category.objects.all()]
        self._offer("category", [(NOBODY, _("none")), *categories])

    def _offer(self, name: str, choices: Any) -> None:
        self.fields[name].choices = [LEAVE, *choices]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and not self.changes():
            raise ValidationError(gettext("Choose at least one thing to change."))
        return cleaned

    def changes(self) -> dict[str, Any]:
        """Plain values by field, as `bulk.begin()` takes them."""
        return {
            name: _plain(name, value) for name, value in self.cleaned_data.items() if name != "ids" and value
        }


def _plain(name: str, value: str) -> Any:
    if value == NOBODY:
        return None
    return int(value) if name in ("assignee", "category") else value


class MergeManyForm(forms.Form):
    ids = SelectionField()
    target = forms.CharField(label=_("Number of the ticket that stays"), max_length=20)

    def clean_target(self) -> Ticket:
        return named_ticket(self.cleaned_data["target"])


class BulkAdmin(admin.ModelAdmin):
    """For the admin of tickets: the actions on many of them."""

    @admin.action(description=_("Change status, priority, assignee or category …"), permissions=["change"])
    def change_many(self, request: HttpRequest, tickets: Any) -> HttpResponse | None:
        return self._ask(request, "change", tickets)

    @admin.action(description=_("Merge into one ticket …"), permissions=["change"])
    def merge_many(self, request: HttpRequest, tickets: Any) -> HttpResponse | None:
        return self._ask(request, "merge", tickets)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """With deleting last: of all that can be done to many tickets it alone cannot be undone."""
        actions = super().get_actions(request)
        if "delete_selected" in actions:
            actions["delete_selected"] = actions.pop("delete_selected")
        return actions

    def changelist_view(self, request: Any, extra_context: dict[str, Any] | None = None) -> Any:
        """With the way back to a run that was left half-way."""
        run = unfinished(request.user) if self.has_change_permission(request) else None
        return super().changelist_view(request, {"unfinished": run} | (extra_context or {}))

    def _ask(self, request: HttpRequest, what: str, tickets: Any) -> HttpResponse | None:
        ids = list(tickets.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
        if len(ids) > MOST:
            note = gettext(
                "Nothing has been changed: these are more than %(most)s tickets. Narrow the list down first."
            )
            messages.error(request, note % {"most": f"{MOST:_}".replace("_", "\u202f")})
            return None
        form = FORMS[what](initial={"ids": ",".join(map(str, ids))})
        return self._asking_page(request, what, form, ids)

    def get_urls(self) -> list[URLPattern]:
        def view(address: str, function: Callable[..., HttpResponse], name: str) -> URLPattern:
            return path(address, self.admin_site.admin_view(function), name=f"tickets_ticket_{name}")

        return [
            view("many/<str:what>/", self.start_view, "many"),
            view("runs/<int:run_id>/", self.run_view, "run"),
            *super().get_urls(),
        ]

    def start_view(self, request: Any, what: str) -> HttpResponse:
        """Takes the answer of the page that asks, and starts the run."""
        self._refuse_strangers(request)
        if what not in FORMS or request.method != "POST":
            raise Http404
        form = FORMS[what](request.POST)
        if not form.is_valid():
            ids = form.cleaned_data.get("ids", [])
            return self._asking_page(request, what, form, ids)
        given = form.cleaned_data
        if isinstance(form, ChangeManyForm):
            run = begin(given["ids"], by=request.user, changes=form.changes())
        else:
            run = begin(set(given["ids"]) - {given["target"].pk}, by=request.user, target=given["target"])
        return HttpResponseRedirect(reverse("admin:tickets_ticket_run", args=[run.pk]))

    def run_view(self, request: Any, run_id: int) -> HttpResponse:
        """GET shows how far it is, POST goes on for a moment; the page posts by itself until it is done or
        stopped."""
        self._refuse_strangers(request)
        try:
            run = (
                advance(run_id, request.user, merge=self.merge)
                if request.method == "POST"
                else BulkRun.objects.get(pk=run_id, by=request.user)
            )
        except BulkRun.DoesNotExist:
            raise Http404 from None
        if request.method == "POST":
            return HttpResponseRedirect(request.path)
        return self._many_page(
            request,
            "run",
            gettext("Changing many tickets"),
            _report(run) | {"goes_on": run.finished_at is None and "stop" not in request.GET},
        )

    def merge(self, duplicate: Ticket, target: Ticket, by: User) -> None:
        """The way of all merges in the admin, for whatever keeps more about them."""
        duplicate.merge_into(target, by, Via.ADMIN)

    def _refuse_strangers(self, request: HttpRequest) -> None:
        if not self.has_change_permission(request):
            raise PermissionDenied

    def _asking_page(self, request: HttpRequest, what: str, form: forms.Form, ids: list[int]) -> HttpResponse:
        first = Ticket.objects.visible_to(request.user).filter(pk__in=ids[:10]).order_by("pk")
        context = {"form": form, "what": what, "count": len(ids), "first": first.only("title")}
        titles = {"change": gettext("Change many tickets"), "merge": gettext("Merge many tickets")}
        return self._many_page(request, "ask_many", titles[what], context)

    def _many_page(
        self, request: HttpRequest, name: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        base = {"title": title, "opts": self.opts, "media": self.media}
        template = f"admin/tickets/ticket/{name}.html"
        return TemplateResponse(request, template, self.admin_site.each_context(request) | base | context)


FORMS: dict[str, type[forms.Form]] = {"change": ChangeManyForm, "merge": MergeManyForm}


def _report(run: BulkRun) -> dict[str, Any]:
    return {
        "run": run,
        "total": len(run.ids),
        "what": _wording(run),
        "done": run.done[:LISTED],
        "unchanged": run.unchanged[:LISTED],
        "refused": run.refused[:LISTED],
        "listed": LISTED,
        "solved_already": solved_already(run.target.chain_end()) if run.target else "",
        "counts": _counts(run),
    }


def _counts(run: BulkRun) -> list[str]:
    done, same, refused = len(run.done), len(run.unchanged), len(run.refused)
    return [
        ngettext("%(n)s ticket changed", "%(n)s tickets changed", done) % {"n": done},
        ngettext("%(n)s was like that already", "%(n)s were like that already", same) % {"n": same},
        ngettext("%(n)s not changed", "%(n)s not changed", refused) % {"n": refused},
    ]


def _wording(run: BulkRun) -> list[str]:
    """What the run does, one sentence a field."""
    if run.changes:
        return [
            gettext("%(field)s becomes %(value)s")
            % {"field": field_label(name), "value": value_label(name, _named(name, value))}
            for name, value in run.changes.items()
        ]
    return [gettext("They are merged into %(ticket)s") % {"ticket": run.target or "–"}]


def _named(name: str, value: Any) -> str:
    models: dict[str, Any] = {"assignee": User, "category": Category}
    return readable(models[name].objects.filter(pk=value).first() if name in models else value)
