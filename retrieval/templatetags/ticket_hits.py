"""How found tickets are put into words: age, language, duration, and what matched."""

import re
import string
from datetime import datetime

from django import template
from django.utils import timezone, translation
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from retrieval.highlight import highlighted
from retrieval.triage import counting

register = template.Library()

BETWEEN_SENTENCES = string.whitespace + ",.;:!?–—-"
WORD_GOES_ON = re.compile(r"-?\w")  # "VPN" is not the whole beginning of "VPN-Client"

# Seconds of each unit, largest first. Own sentences: languages bend the unit after "ago" (vor 3 Tagen).
UNITS = (
    (31_557_600, ngettext_lazy("%(n)d year ago", "%(n)d years ago", "n")),
    (2_629_800, ngettext_lazy("%(n)d month ago", "%(n)d months ago", "n")),
    (604_800, ngettext_lazy("%(n)d week ago", "%(n)d weeks ago", "n")),
    (86_400, ngettext_lazy("%(n)d day ago", "%(n)d days ago", "n")),
    (3_600, ngettext_lazy("%(n)d hour ago", "%(n)d hours ago", "n")),
    (60, ngettext_lazy("%(n)d minute ago", "%(n)d minutes ago", "n")),
)


@register.filter
def age(moment: datetime | None) -> str:
    """How long ago, in its largest unit: "3 weeks ago"."""
    if moment is None:
        return ""
    seconds = (timezone.now() - moment).total_seconds()
    for length, sentence in UNITS:
        if seconds >= length:
            return sentence % {"n": int(seconds // length)}
    return _("just now")


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
def bounded(count: int) -> str:
    return counting.in_words(count)


@register.filter
def beyond(passage: str, title: str) -> str:
    """The passage without the title at its beginning, which the card shows above it anyway."""
    rest = passage.removeprefix(title)
    if rest == passage or WORD_GOES_ON.match(rest):
        return passage.strip()
    return rest.lstrip(BETWEEN_SENTENCES).rstrip()


@register.filter
def marked(text: str, terms: list[str]) -> SafeString:
    return highlighted(text, terms)
