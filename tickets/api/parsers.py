"""Reads a body of JSON, never more of it than may be."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from .problems import BodyTooLarge


class JSONParser(BaseParser):
    """UTF-8 only, as RFC 8259 wants it. NaN and Infinity are no JSON."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = self._read(stream)
        try:
            return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise ParseError(_("The body is not valid UTF-8.")) from error
        except RecursionError as error:
            raise ParseError(_("The body is nested too deeply.")) from error
        except ValueError as error:
            raise ParseError(_where(error)) from error

    @staticmethod
    def _read(stream: IO[Any]) -> bytes:
        limit = settings.API_MAX_BODY_BYTES
        body: bytes = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(limit)
        return body


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        place = {"line": error.lineno, "column": error.colno}
        return _("The body is not valid JSON: line %(line)d, column %(column)d.") % place
    return _("The body is not valid JSON.")
