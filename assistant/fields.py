"""A JSON column that gives back exactly what was put in."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class ExactJSONField(models.TextField):
    """JSON kept as text, so that content blocks go back to the API as they came.

    `jsonb` would reorder the keys of a tool call (and with them break the provider's prompt cache), and
    refuses NUL and lone surrogates, which are legal in JSON. Nothing queries inside these values.
    """

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value)

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))
