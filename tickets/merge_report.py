"""What a merge has done, in words, wherever one is reported."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from .models import Ticket
from .querysets import UNRESOLVED


def merge_report(duplicate: Ticket) -> SafeString:
    """Which ticket stands for `duplicate` now, and a warning if its open problem went into a solved one."""
    end = duplicate.chain_end()
    numbers = {"duplicate": duplicate.pk, "target": end.pk}
    done = _("#%(duplicate)s is now a duplicate of #%(target)s.") % numbers
    if duplicate.status_before_merge not in UNRESOLVED:
        return format_html("{}", done)
    return format_html("{} {}", done, solved_already(end))


def solved_already(target: Ticket) -> SafeString:
    """The warning that nobody works on the ticket that reports are merged into; "" while somebody does."""
    if not target.is_resolved:
        return SafeString()
    page = reverse("admin:tickets_ticket_change", args=[target.pk])
    link = format_html('<a href="{}">#{}</a>', page, target.pk)
    sentence = _("{ticket} is already {status}: reopen it if the problem has come back.")
    return format_html(sentence, ticket=link, status=target.get_status_display())
