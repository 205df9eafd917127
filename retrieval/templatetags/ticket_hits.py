"""How found tickets are put into words: age, language, duration, and what matched."""

from datetime import datetime

from django import template
from django.utils import timezone, translation
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from retrieval.highlight import highlighted

register = template.Library()


@register.filter
def age(moment: datetime | None) -> str:
    """How long ago, in its largest unit: "3 weeks ago"."""
    if moment is None:
        return ""
    if (timezone.now() - moment).total_seconds() < 60:
        return _("just now")
    return _("%(time)s ago") % {"time": timesince(moment, depth=1)}


@register.filter
def duration(milliseconds: int | None) -> str:
    """Milliseconds as people read them: "240 ms", "1.8 s"."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{number_format(milliseconds / 1000, 1)} s"


@register.filter
def language_name(code: str) -> str:
    """The language in the reader's words; the code itself where Django knows no name."""
    try:
        return str(translation.get_language_info(code)["name_translated"])
    except KeyError:
        return code


@register.filter
def marked(text: str, terms: list[str]) -> SafeString:
    return highlighted(text, terms)
