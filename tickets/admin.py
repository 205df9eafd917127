"""The agents' workplace."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from .bulk_admin import BulkAdmin
from .created_filter import CreatedFilter
from .exchange_admin import ExchangeAdmin
from .forms import CategoryChoiceField, GroupsChoiceField, MergeForm, PersonChoiceField, TicketForm
from .history import describe, field_label, value_label
from .labels import category_label, group_label
from .merge_report import merge_report, solved_already
from .models import Category, Ticket, TicketEvent, Via, readable
from .paginator import BoundedPaginator
from .permissions import may_comment
from .querysets import TicketQuerySet
from .readonly_admin import RecordAdmin
from .services import create_ticket
from .text import is_blank, within_quotes

admin.site.site_header = admin.site.site_title = _("Helpdesk")
admin.site.index_title = _("Overview")
admin.site.enable_nav_sidebar = False  # the list of tickets needs the width

OTHERS = 5  # of the reporter's other tickets
HISTORY_LINES = 30  # on the ticket's page; the rest stands on the history page
Choices = list[tuple[str, Any]]


# Label and narrowing of each tab above the list.
QuickViews = dict[str, tuple[Any, Callable[[TicketQuerySet, User], TicketQuerySet]]]
QUICK_VIEWS: QuickViews = {
    "open": (_("Unresolved"), lambda tickets, user: tickets.unresolved()),
    "mine": (_("My open tickets"), lambda tickets, user: tickets.unresolved().filter(assignee=user)),
    "waiting": (_("Waiting for me"), lambda tickets, user: tickets.waiting_for(user)),
    "unassigned": (_("Unassigned"), lambda tickets, user: tickets.unresolved().filter(assignee=None)),
    "urgent": (_("Urgent"), lambda tickets, user: tickets.unresolved().filter(priority="urgent")),
    "pending": (_("Pending"), lambda tickets, user: tickets.filter(status="pending")),
    "reported": (_("Reported by me"), lambda tickets, user: tickets.filter(reporter=user)),
}


class QuickViewFilter(admin.SimpleListFilter):
    """The questions of every morning, as tabs above the list."""

    title = _("view")
    parameter_name = "view"
    template = "admin/tickets/ticket/no_sidebar_filter.html"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.views: QuickViews = model_admin.quick_views
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(name, label) for name, (label, _narrow) in self.views.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        view = self.views.get(self.value() or "")
        return view[1](queryset, request.user) if view else queryset  # type: ignore[arg-type]


class AssigneeFilter(admin.SimpleListFilter):
    """Staff only: the filter that comes with Django would list every person there is."""

    title = _("assignee")
    parameter_name = "assignee"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        staff = User.objects.filter(is_staff=True, is_active=True).order_by("first_name", "username")
        return [("none", _("nobody")), *((str(person.pk), readable(person)) for person in staff)]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value == "none":
            return queryset.filter(assignee=None)
        return queryset.filter(assignee=value) if value and value.isdecimal() else queryset


class CategoryFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        return [
            (pk, category_label(str(name))) for pk, name in super().field_choices(field, request, model_admin)
        ]


class GroupFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        return [
            (pk, group_label(str(name))) for pk, name in super().field_choices(field, request, model_admin)
        ]


class SearchSwitch(admin.SimpleListFilter):
    """A switch beside the search field; what it does is up to `get_search_results()`."""

    template = "admin/tickets/ticket/no_sidebar_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [("1", self.title)]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset


class TicketChangeList(ChangeList):
    def search_switches(self) -> list[dict[str, Any]]:
        specs = [spec for spec in self.filter_specs if isinstance(spec, SearchSwitch)]
        return [
            {"name": spec.parameter_name, "label": spec.title, "is_on": spec.value() is not None}
            for spec in specs
        ]

    def other_params(self) -> dict[str, str]:
        """What the search form carries along: everything but what it asks for itself."""
        own = {"q", *(switch["name"] for switch in self.search_switches())}
        return {name: value for name, value in self.params.items() if name not in own}

    def quick_views(self) -> list[Any]:
        """The tabs, for the template."""
        specs = [spec for spec in self.filter_specs if isinstance(spec, QuickViewFilter)]
        return [choice for spec in specs for choice in spec.choices(self)]

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        """Without the long texts, which the list does not show."""
        return super().get_queryset(request, exclude_parameters).defer("description", "resolution")


@admin.register(Ticket)
class TicketAdmin(ExchangeAdmin, BulkAdmin):
    form = TicketForm
    list_display = ("number", "summary", "state", "owner", "age", "activity", "topic", "person")
    list_display_links = ("number", "summary")
    list_filter: ClassVar[Any] = (
        QuickViewFilter,
        CreatedFilter,
        "status",
        "priority",
        AssigneeFilter,
        ("category", CategoryFilter),
    )
    quick_views = QUICK_VIEWS
    actions = ("change_many", "merge_many", "export_as_csv")
    list_select_related = ("category", "reporter", "assignee")
    list_per_page = 100
    search_fields = ("search_words",)  # makes the field appear; see get_search_results()
    search_help_text = _("Words, “a phrase”, -without; an error code, a host or an asset; #123 for a number.")
    ordering = ("-created_at", "-pk")
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    autocomplete_fields = ("reporter",)
    save_on_top = False

    class Media:
        css = {"all": ("tickets/admin.css",)}

    # -- the list ------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return TicketChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Ticket]:
        return Ticket.objects.visible_to(request.user)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"title": gettext("Tickets")} | (extra_context or {}))

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        return (queryset.search(search_term) if search_term.strip() else queryset), False

    @admin.display(description=_("no."), ordering="pk")
    def number(self, ticket: Ticket) -> str:
        return f"#{ticket.pk}"

    @admin.display(description=_("title"))
    def summary(self, ticket: Ticket) -> str | SafeString:
        if ticket.duplicate_of_id is None:
            return ticket.title
        marker = gettext("duplicate of #%(id)s") % {"id": ticket.duplicate_of_id}
        return format_html('{} <span class="ticket-duplicate">{}</span>', ticket.title, marker)

    @admin.display(description=_("status"))
    def state(self, ticket: Ticket) -> SafeString:
        """With the priority where it is out of the ordinary, so that it stands out."""
        status = badge("status", ticket.status, ticket.get_status_display())
        if ticket.priority == Ticket.Priority.NORMAL:
            return status
        return format_html("{} {}", status, badge("priority", ticket.priority, ticket.get_priority_display()))

    @admin.display(description=_("category"), ordering="category__name", empty_value="–")
    def topic(self, ticket: Ticket) -> str | None:
        return ticket.category.label if ticket.category else None

    @admin.display(description=_("reporter"))
    def person(self, ticket: Ticket) -> str:
        return readable(ticket.reporter)

    @admin.display(description=_("assignee"), empty_value="–")
    def owner(self, ticket: Ticket) -> str | None:
        return readable(ticket.assignee) or None

    @admin.display(description=_("age"), ordering="-created_at")
    def age(self, ticket: Ticket) -> SafeString:
        return ago(ticket.created_at)

    @admin.display(description=_("last activity"), ordering="updated_at")
    def activity(self, ticket: Ticket) -> SafeString:
        return ago(ticket.updated_at)

    # -- the ticket ----------------------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Ticket | None = None) -> Any:
        problem = {"fields": ["title", "description", ("reporter", "category")]}
        if obj is None:
            return [(None, problem), (_("Handling"), {"fields": [("priority", "assignee")]})]
        return [
            (None, problem),
            (_("Handling"), {"fields": [("status", "priority", "assignee"), "resolution"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Ticket | None = None) -> tuple[str, ...]:
        return ("status",) if obj is not None and obj.duplicate_of_id is not None else ()

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """People by name, and without the buttons that would change a person or a category from here."""
        if db_field.name in ("reporter", "assignee"):
            kwargs["form_class"] = PersonChoiceField
        elif db_field.name == "category":
            kwargs["form_class"] = CategoryChoiceField
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        if db_field.name in ("title", "description", "resolution"):
            field.widget.attrs["dir"] = "auto"  # by what is written, from the left or from the right
        if db_field.name == "resolution":
            field.widget.attrs["rows"] = 4
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"reporter": request.user.pk, **super().get_changeform_initial_data(request)}

    def save_model(self, request: Any, obj: Ticket, form: Form, change: bool) -> None:
        named = {name: form.cleaned_data[name] for name in form.changed_data if name in Ticket.CHANGEABLE}
        if change:
            obj.change(
                by=request.user, via=Via.ADMIN, expected_version=form.cleaned_data["seen_version"], **named
            )
            self._add_comment(request, obj, form)
        else:
            self._create(request, obj)

    def _create(self, request: Any, obj: Ticket) -> None:
        created = create_ticket(
            reporter=obj.reporter,
            title=obj.title,
            description=obj.description,
            source=Ticket.Source.ADMIN,
            priority=obj.priority,
            category=obj.category,
            assignee=obj.assignee,
            duplicate_check=obj.duplicate_check,
            by=request.user,
        )
        obj.__dict__.update(created.__dict__)

    def _add_comment(self, request: Any, ticket: Ticket, form: Form) -> None:
        body = form.cleaned_data["comment"]
        if is_blank(body) or not may_comment(request.user):
            return
        internal = form.cleaned_data["comment_internal"]
        comment = ticket.add_comment(by=request.user, body=body, internal=internal, via=Via.ADMIN)
        if comment.ticket_id != ticket.pk:
            note = gettext("Your comment has been added to #%(target)s, which this ticket is a duplicate of.")
            messages.info(request, note % {"target": comment.ticket_id})

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """A ticket that is deleted while it is being saved is as gone as one deleted before."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Ticket.DoesNotExist:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]

    def render_change_form(
        self, request: Any, context: dict[str, Any], add: bool = False, change: bool = False,
        form_url: str = "", obj: Ticket | None = None,
    ) -> HttpResponse:  # fmt: skip
        if obj is not None:
            context |= {"show_save_and_add_another": False} | self._ticket_context(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _ticket_context(self, request: HttpRequest, ticket: Ticket) -> dict[str, Any]:
        chain = list(ticket.whole_chain().defer("description", "resolution").select_related("reporter"))
        events = list(ticket.events.select_related("actor").order_by("-pk")[: HISTORY_LINES + 1])
        return {
            "chain": [one for one in chain if one.pk != ticket.pk],
            "chain_end": next(one for one in chain if one.duplicate_of_id is None),
            "reporters": {one.reporter_id: one.reporter for one in chain}.values(),
            "thread": ticket.thread(),
            "others": self._others_of_the_reporter(request, ticket, chain),
            "history": [describe(event) for event in events[:HISTORY_LINES]],
            "history_is_longer": len(events) > HISTORY_LINES,
            "can_comment": may_comment(request.user),
            "stored": Ticket.objects.only("title", "status", "priority", "created_at", "source").get(
                pk=ticket.pk
            ),
        }

    def _others_of_the_reporter(
        self, request: HttpRequest, ticket: Ticket, chain: list[Ticket]
    ) -> list[Ticket]:
        theirs = self.get_queryset(request).filter(reporter=ticket.reporter_id)
        rest = theirs.exclude(pk__in=[one.pk for one in chain]).order_by("-created_at", "-pk")
        return list(rest.only("title", "status", "created_at")[:OTHERS])

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The ticket's own history instead of the admin's log, which knows only what was done here."""
        ticket = self._ticket(request, object_id, change=False)
        events = Paginator(ticket.events.select_related("actor").order_by("-pk"), 200)
        page = events.get_page(request.GET.get("p"))
        context = {"history": [describe(event) for event in page], "page": page}
        return self._page(request, ticket, "history", gettext("History"), context | (extra_context or {}))

    # -- merging -------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        def view(suffix: str, function: Callable[..., HttpResponse]) -> URLPattern:
            wrapped = self.admin_site.admin_view(function)
            return path(f"<int:object_id>/{suffix}/", wrapped, name=f"tickets_ticket_{suffix}")

        return [view("merge", self.merge_view), view("unmerge", self.unmerge_view), *super().get_urls()]

    def merge_view(self, request: Any, object_id: int) -> HttpResponse:
        """Ask for the target, show what will happen, then do it."""
        ticket = self._ticket(request, object_id, change=True)
        data = request.POST or request.GET
        form = MergeForm(ticket, data if "target" in data else None)
        target = form.cleaned_data["target"] if form.is_valid() else None
        if target and request.method == "POST" and self._done(request, self.merge, ticket, target):
            note = gettext("It can be undone at any time.")
            messages.success(request, format_html("{} {}", merge_report(ticket), note))
            return self._back_to(ticket)
        end = target and target.chain_end()
        context = {
            "form": form,
            "end": end,
            "solved_already": solved_already(end) if end and not ticket.is_resolved else "",
            "quoted": within_quotes(str(ticket)),
        }
        return self._page(request, ticket, "merge", gettext("Merge into another ticket"), context)

    def unmerge_view(self, request: Any, object_id: int) -> HttpResponse:
        ticket = self._ticket(request, object_id, change=True)
        if request.method == "POST" and self._done(request, self.unmerge, ticket):
            messages.success(request, gettext("#%(id)s stands for itself again.") % {"id": ticket.pk})
        if request.method == "POST" or ticket.duplicate_of is None:
            return self._back_to(ticket)
        context = {
            "status_before": Ticket.Status(ticket.status_before_merge).label,
            "quoted": within_quotes(str(ticket.duplicate_of)),
        }
        return self._page(request, ticket, "unmerge", gettext("Undo the merge"), context)

    def unmerge(self, duplicate: Ticket, by: User) -> None:
        duplicate.unmerge(by, Via.ADMIN)

    def _done(self, request: Any, action: Callable[..., None], *args: Ticket) -> bool:
        try:
            action(*args, request.user)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return False
        return True

    def _ticket(self, request: HttpRequest, object_id: str | int, *, change: bool) -> Ticket:
        allowed = self.has_change_permission if change else self.has_view_permission
        if not allowed(request):
            raise PermissionDenied
        return get_object_or_404(self.get_queryset(request), pk=object_id)

    def _page(
        self, request: HttpRequest, ticket: Ticket, name: str, title: str, context: dict[str, Any]
    ) -> TemplateResponse:
        base = {"title": title, "opts": self.opts, "original": ticket, "media": self.media}
        template = f"admin/tickets/ticket/{name}.html"
        return TemplateResponse(request, template, self.admin_site.each_context(request) | base | context)

    def _back_to(self, ticket: Ticket) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse("admin:tickets_ticket_change", args=[ticket.pk]))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Whoever may delete a ticket may delete what goes with it: its history, its vector, what was said
        about it, though nobody may delete from those."""
        listed, counts, _lacking, protected = super().get_deleted_objects(objs, request)
        may_delete = self.has_delete_permission(request)
        return listed, counts, set() if may_delete else {self.opts.verbose_name}, protected


def badge(kind: str, value: str, label: str) -> SafeString:
    return format_html('<span class="badge {}-{}">{}</span>', kind, value, label)


def ago(moment: Any) -> SafeString:
    """The largest unit only; the exact time is in the tooltip."""
    exact = formats.date_format(timezone.localtime(moment), "SHORT_DATETIME_FORMAT")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, timesince(moment, depth=1)
    )


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):
    search_fields = ("name",)
    list_display = ("named",)

    @admin.display(description=_("name"), ordering="name")
    def named(self, category: Category) -> str:
        return category.label


@admin.register(TicketEvent)
class TicketEventAdmin(RecordAdmin):
    """What happened everywhere, newest first. Nobody can change it."""

    list_display = ("created_at", "ticket_number", "line", "via")
    list_filter = ("kind", "via")
    list_select_related = ("actor",)
    fields = ("ticket_number", "created_at", "actor", "via", "kind", "field_name", "before", "after")

    @admin.display(description=_("ticket"))
    def ticket_number(self, event: TicketEvent) -> SafeString:
        address = reverse("admin:tickets_ticket_change", args=[event.ticket_id])
        return format_html('<a href="{}">#{}</a>', address, event.ticket_id)

    @admin.display(description=_("field"))
    def field_name(self, event: TicketEvent) -> str:
        return field_label(event.field) if event.field else "–"

    @admin.display(description=_("before"))
    def before(self, event: TicketEvent) -> str:
        return _in_words(event, event.old)

    @admin.display(description=_("after"))
    def after(self, event: TicketEvent) -> str:
        return _in_words(event, event.new)

    @admin.display(description=_("what"))
    def line(self, event: TicketEvent) -> str:
        line = describe(event)
        return f"{line.who} {line.what}"


def _in_words(event: TicketEvent, value: str) -> str:
    return value_label(event.field, value) if event.field else value or "–"


admin.site.unregister(Group)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    list_display = ("named",)

    @admin.display(description=_("name"), ordering="name")
    def named(self, group: Group) -> str:
        return group_label(group.name)


NEEDED_FOR_TICKETS = _("To work with tickets, a person needs the staff status and one of the groups.")

admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(UserAdmin):
    """Who may only look (to choose a reporter) sees names, neither permissions nor password hashes."""

    list_filter = ("is_staff", "is_superuser", "is_active", ("groups", GroupFilter))

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["form_class"] = GroupsChoiceField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and not self.has_change_permission(request, obj):
            return [
                (
                    None,
                    {"fields": ("username", ("first_name", "last_name"), "email", "is_active", "is_staff")},
                )
            ]
        return [
            (name, options | ({"description": NEEDED_FOR_TICKETS} if "groups" in options["fields"] else {}))
            for name, options in super().get_fieldsets(request, obj)
        ]
