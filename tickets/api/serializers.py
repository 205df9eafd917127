"""How tickets look outside, and the shape of what may be sent. What a value may be, the models decide."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError as ModelValidationError
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tickets.models import MAX_TEXT, Category, Comment, Ticket, TicketEvent
from tickets.services import find_category


def etag_of(ticket: Ticket) -> str:
    return f'"{ticket.version}"'


# -- what is sent ------------------------------------------------------------------------------------------


class StrictSerializer(serializers.Serializer):
    """Refuses names it does not know: a misspelt field must not look as if it had been changed."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                message = _("There is no such field here, or it cannot be set.")
                raise serializers.ValidationError({name: [message] for name in unknown}, "unknown_field")
        return super().to_internal_value(data)


class TextField(serializers.Field):
    """Text as it comes; it is cleaned and judged by the model, as on every other path."""

    default_error_messages = {"invalid": _("Not a text.")}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": 200})
class TitleField(TextField):
    pass


@extend_schema_field({"type": "string", "maxLength": MAX_TEXT})
class LongTextField(TextField):
    pass


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": MAX_TEXT})
class BodyField(TextField):
    pass


class Flag(serializers.BooleanField):
    """Only true and false, not "yes" or 1."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field(OpenApiTypes.STR)
class PersonField(TextField):
    """A person by user name."""

    default_error_messages = {"unknown": _("There is nobody with this user name.")}

    def to_internal_value(self, data: Any) -> User:  # type: ignore[override]
        name = super().to_internal_value(data)
        person = User.objects.filter(username=name, is_active=True).first() if "\0" not in name else None
        if person is None:
            self.fail("unknown")
        return person


@extend_schema_field(OpenApiTypes.STR)
class CategoryField(TextField):
    """A category by name, in any case."""

    def to_internal_value(self, data: Any) -> Category:  # type: ignore[override]
        try:
            return find_category(super().to_internal_value(data))
        except ModelValidationError as error:
            raise serializers.ValidationError(error.messages, "unknown") from error


class NewTicketSerializer(StrictSerializer):
    title = TitleField()
    description = LongTextField(default="")
    priority = serializers.ChoiceField(choices=Ticket.Priority.choices, default=Ticket.Priority.NORMAL)
    category = CategoryField(allow_null=True, default=None)
    reporter = PersonField(required=False, help_text="User name; whoever sends the request, unless given.")
    assignee = PersonField(allow_null=True, default=None, help_text="User name.")

    class Meta:
        ref_name = "NewTicket"


class TicketChangeSerializer(StrictSerializer):
    """Whatever is named is changed, nothing else."""

    title = TitleField(required=False)
    description = LongTextField(required=False)
    status = serializers.ChoiceField(choices=Ticket.Status.choices, required=False)
    priority = serializers.ChoiceField(choices=Ticket.Priority.choices, required=False)
    category = CategoryField(required=False, allow_null=True)
    reporter = PersonField(required=False)
    assignee = PersonField(required=False, allow_null=True)
    resolution = LongTextField(required=False, help_text="How it was solved.")


class NewCommentSerializer(StrictSerializer):
    body = BodyField()
    internal = Flag(default=False, help_text="For colleagues only, not for the reporter.")


# -- what is answered --------------------------------------------------------------------------------------


class TicketSummarySerializer(serializers.ModelSerializer):
    """A ticket without its long texts, as lists show it."""

    reporter = serializers.CharField(source="reporter.username", read_only=True, help_text="User name.")
    assignee = serializers.CharField(
        source="assignee.username", read_only=True, allow_null=True, default=None, help_text="User name."
    )
    category = serializers.CharField(source="category.name", read_only=True, allow_null=True, default=None)
    duplicate_of = serializers.IntegerField(
        source="duplicate_of_id", read_only=True, allow_null=True, help_text="Merged into this ticket."
    )

    class Meta:
        model = Ticket
        fields = (
            "id",
            "title",
            "status",
            "priority",
            "category",
            "reporter",
            "assignee",
            "source",
            "duplicate_of",
            "duplicate_check",
            "created_at",
            "updated_at",
            "resolved_at",
            "version",
        )
        read_only_fields = fields


class TicketSerializer(TicketSummarySerializer):
    class Meta:
        model = Ticket
        fields = (*TicketSummarySerializer.Meta.fields, "description", "resolution")
        read_only_fields = fields


class CommentSerializer(serializers.ModelSerializer):
    ticket = serializers.IntegerField(
        source="ticket_id",
        read_only=True,
        help_text="Where it was written: this ticket or one merged with it.",
    )
    author = serializers.CharField(source="author.username", read_only=True, help_text="User name.")

    class Meta:
        model = Comment
        fields = ("id", "ticket", "author", "body", "internal", "created_at")
        read_only_fields = fields


class EventSerializer(serializers.ModelSerializer):
    actor = serializers.CharField(
        source="actor.username", read_only=True, allow_null=True, default=None, help_text="User name."
    )

    class Meta:
        model = TicketEvent
        fields = ("id", "kind", "field", "old", "new", "actor", "via", "version", "created_at")
        read_only_fields = fields


class CategorySerializer(serializers.ModelSerializer):
    class Meta:
        model = Category
        fields = ("id", "name")
        read_only_fields = fields


# -- errors, for the schema only ---------------------------------------------------------------------------


class FieldProblemSerializer(serializers.Serializer):
    """Exactly one of pointer, parameter and header says where."""

    pointer = serializers.CharField(required=False, help_text="JSON pointer into the body, such as #/title.")
    parameter = serializers.CharField(required=False, help_text="Name of a query parameter.")
    header = serializers.CharField(required=False)
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemSerializer(serializers.Serializer):
    """RFC 9457. `title` and `detail` are in the language of the request, `type` is for programs."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = FieldProblemSerializer(many=True, required=False)  # type: ignore[assignment]


class StaleProblemSerializer(ProblemSerializer):
    """Somebody was faster: the ticket as it is now, and what has happened since."""

    ticket = TicketSerializer()
    changes = EventSerializer(many=True)
