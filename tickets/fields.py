"""Model fields that clean text on every path: forms, API, tools, `update()`, `bulk_create()`."""

from typing import Any

from django import forms
from django.contrib.postgres.search import SearchVectorField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.sql.compiler import SQLCompiler
from django.utils.translation import gettext_lazy as _

from .text import clean_text, clean_title, is_blank

BLANK = _("Please write something that can be read: this is empty or only white space.")


def refuse_blank(text: str) -> None:
    if is_blank(text):
        raise ValidationError(BLANK, "blank")


class CleanTextFormField(forms.CharField):
    """Cleans before validating, so that a stray NUL is dropped as on the other paths instead of refused."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(clean_text(value) if isinstance(value, str) else value)


class CleanTextField(models.TextField):
    default_error_messages = {"blank": BLANK}

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return clean_text(value) if isinstance(value, str) else value

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": CleanTextFormField, "strip": False, **kwargs})


class TitleField(models.CharField):
    """A single line of text."""

    default_error_messages = {"blank": BLANK}

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return clean_text(value) if isinstance(value, str) else value

    def clean(self, value: Any, model_instance: models.Model | None) -> Any:
        return super().clean(clean_title(value) if isinstance(value, str) else value, model_instance)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": CleanTextFormField, **kwargs})


class UnselectedSearchVectorField(SearchVectorField):
    """A full-text vector to filter and rank by in SQL, never fetched: a SELECT yields None for it.

    It is as large as its text; without this every query for a ticket would carry it, `select_related()`
    included.
    """

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> tuple[str, Any]:
        return "NULL", ()
