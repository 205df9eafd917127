"""What the product calls its own groups and the categories of the demo, in the reader's language.

The database holds their names, by which programs, imports and settings know them; no translation ever reaches
it. A group or a category that somebody else has made is called what its maker called it.
"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from .roles import AGENT, SUPERVISOR

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_GROUPS: dict[str, "StrOrPromise"] = {AGENT: _("Agents"), SUPERVISOR: _("Supervisors")}
_CATEGORIES: dict[str, "StrOrPromise"] = {
    "Accounts": _("Accounts"),
    "Doors": _("Doors"),
    "Email": _("Email"),
    "File shares": _("File shares"),
    "Phones": _("Phones"),
    "Printing": _("Printing"),
    "Wi-Fi": _("Wi-Fi"),
}


def group_label(name: str) -> str:
    return str(_GROUPS.get(name, name))


def category_label(name: str) -> str:
    return str(_CATEGORIES.get(name, name))
