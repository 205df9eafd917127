"""For whom and where a tool call runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from django.contrib.auth.models import User

from assistant.models import Conversation, ConversationTicket, Turn
from assistant.tools.errors import ToolError
from tickets import permissions
from tickets.models import Category, Ticket

MOST_NAMES = 40


@dataclass(frozen=True, slots=True)
class Scope:
    user: User
    conversation: Conversation
    turn: Turn

    def ticket(self, ticket_id: int) -> Ticket:
        """The ticket if the person may see it. Invisible and missing tickets get the same answer."""
        self.require_view()
        ticket = (
            Ticket.objects.visible_to(self.user)
            .select_related("category", "assignee", "reporter")
            .filter(pk=ticket_id)
            .first()
        )
        if ticket is None:
            raise ToolError(
                f"There is no ticket {ticket_id}, or the person may not see it. "
                "Use list_tickets or find_similar_tickets to get valid numbers.",
                "unknown_ticket",
            )
        return ticket

    def require_view(self) -> None:
        if not permissions.may_view(self.user):
            _forbidden("see tickets", "tickets.view_ticket")

    def require_add(self) -> None:
        if not permissions.may_add(self.user):
            _forbidden("create tickets", "tickets.add_ticket")

    def require_change(self) -> None:
        if not permissions.may_change(self.user):
            _forbidden("change tickets", "tickets.change_ticket")

    def require_comment(self) -> None:
        if not permissions.may_comment(self.user):
            _forbidden("comment on tickets", "tickets.add_comment")

    def version_seen(self, ticket: Ticket) -> int | None:
        """The version of the ticket that the model has read in this conversation, if it has."""
        known = ConversationTicket.objects.filter(conversation=self.conversation, ticket=ticket)
        return known.values_list("version_seen", flat=True).first()

    def judged_different(self) -> set[int]:
        """What the person has turned down here: not suggested again for this problem."""
        known = self.conversation.known_tickets.filter(judgement=ConversationTicket.Judgement.DIFFERENT)
        return set(known.values_list("ticket_id", flat=True))

    def person(self, name: str) -> User:
        """A member of staff by user name or full name, or "me"."""
        if name.casefold() == "me":
            return self.user
        staff = User.objects.filter(is_active=True, is_staff=True)
        found = staff.filter(username__iexact=name).first()
        if found is None:
            found = next((one for one in staff if one.get_full_name().casefold() == name.casefold()), None)
        if found is None:
            known = list(staff.order_by("username").values_list("username", flat=True)[: MOST_NAMES + 1])
            raise ToolError(
                f"There is no member of staff with this name. User names: {_some(known)}.", "unknown_user"
            )
        return found

    def category(self, name: str) -> Category:
        found = Category.objects.filter(name__iexact=name).first()
        if found is None:
            known = list(Category.objects.values_list("name", flat=True)[: MOST_NAMES + 1])
            raise ToolError(f"There is no such category. Categories: {_some(known)}.", "unknown_category")
        return found


def _forbidden(what: str, permission: str) -> NoReturn:
    raise ToolError(
        f"The person you act for may not {what} (they lack the permission {permission}). "
        "Tell them; do not try again.",
        "forbidden",
    )


def _some(names: list[str]) -> str:
    if not names:
        return "none"
    return ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
