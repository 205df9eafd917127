"""What a check is, and the list of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from retrieval.embedders import EmbeddingError
from retrieval.index import Unavailable

from .subject import Subject

logger = logging.getLogger(__name__)


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: `name` is stable, the other texts are for people; `advice` is empty while all is well."""

    name: str
    label: str
    figure: str
    limit: str
    state: State
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


Function = Callable[[Subject], Check | None]


@dataclass(frozen=True, slots=True)
class Registered:
    """`quick`: a few milliseconds and no provider, fit for /healthz. `probe`: asks the provider."""

    function: Function
    quick: bool
    probe: bool

    @property
    def name(self) -> str:
        return self.function.__name__


_registered: dict[str, Registered] = {}


def register(function: Function | None = None, *, quick: bool = False, probe: bool = False) -> Any:
    """Adds a check to the list, in the order of registration. The function's name is the check's.

    It answers None where it does not apply, for instance because search by meaning is switched off.
    """

    def add(function: Function) -> Function:
        _registered[function.__name__] = Registered(function, quick, probe)
        return function

    return add if function is None else add(function)


def registered() -> Collection[Registered]:
    return _registered.values()


def run(*, probes: bool = True, only_quick: bool = False) -> list[Check]:
    """The lines of all checks that apply. Never raises: a check that breaks is itself a failed line."""
    subject = Subject()
    wanted = [one for one in registered() if (probes or not one.probe) and (one.quick or not only_quick)]
    lines = [_line(one, subject) for one in wanted]
    return [line for line in lines if line is not None]


def _line(one: Registered, subject: Subject) -> Check | None:
    try:
        with transaction.atomic():
            return one.function(subject)
    except (EmbeddingError, Unavailable) as reason:
        return _unmeasured(one.name, str(reason))
    except Exception:
        logger.exception("health check %s broke", one.name)
        return _unmeasured(one.name, _("The check itself broke; the log says how."))


def _unmeasured(name: str, reason: str) -> Check:
    return Check(name, name.replace("_", " "), _("could not be measured"), "", State.FAIL, reason)


def verdict(*, fail: bool, warn: bool = False) -> State:
    return State.FAIL if fail else State.WARN if warn else State.OK
