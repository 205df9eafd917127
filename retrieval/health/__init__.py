"""Whether the search still works, measured by what it does and not by how much there is of it.

Each check is one small function: from the subject to one line with figure, limit and what to do. Apps further
up add theirs with `register`.
"""

from . import stored, searches  # noqa: F401, I001  (they register their checks, in the order of the page)
from .check import Check, State, register, registered, run
from .subject import Subject

__all__ = ["Check", "State", "Subject", "register", "registered", "run"]
