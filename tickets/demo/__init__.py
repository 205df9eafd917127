"""Demo data: what a helpdesk looks like after some weeks, half in German, half in English."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction

from tickets import clock
from tickets.models import Category, Ticket, Via
from tickets.roles import create_groups
from tickets.services import create_ticket

DATA = Path(__file__).parent
LOGIN, PASSWORD = "demo", "demo-helpdesk"


@dataclass(frozen=True, slots=True)
class Seeded:
    people: int
    tickets: int


@transaction.atomic
def seed() -> Seeded:
    """Create what is missing. Tickets are created once: what was changed or deleted does not come back."""
    people_before = User.objects.count()
    staff, reporters = _create_people()
    _create_login()
    is_new = not Ticket.objects.filter(reporter__in=reporters).exists()
    tickets = _create_tickets({user.username: user for user in staff + reporters}) if is_new else 0
    return Seeded(people=User.objects.count() - people_before, tickets=tickets)


def _create_login() -> None:
    if not User.objects.filter(username=LOGIN).exists():
        User.objects.create_superuser(LOGIN, password=PASSWORD, first_name="Robin", last_name="Demo")


def _create_people() -> tuple[list[User], list[User]]:
    """Staff and reporters, none of whom can log in: they have no password."""
    create_groups(Group, Permission)
    data = json.loads((DATA / "people.json").read_text(encoding="utf-8"))
    staff = [_person(is_staff=True, **entry) for entry in data["staff"]]
    return staff, [_person(is_staff=False, **entry) for entry in data["reporters"]]


def _person(*, username: str, first_name: str, last_name: str, is_staff: bool, group: str = "") -> User:
    defaults = {"first_name": first_name, "last_name": last_name, "is_staff": is_staff, "password": "!"}
    user, is_new = User.objects.get_or_create(username=username, defaults=defaults)
    if is_new and group:
        user.groups.add(Group.objects.get(name=group))
    return user


def _create_tickets(people: dict[str, User]) -> int:
    entries = json.loads((DATA / "tickets.json").read_text(encoding="utf-8"))
    for place, entry in enumerate(entries):
        entry["age"] = timedelta(days=entry["days_ago"], minutes=30 + 37 * place % 420)
    # Oldest first, so that the numbers grow with time as in life.
    entries.sort(key=lambda entry: entry["age"], reverse=True)
    names = sorted({entry["category"] for entry in entries})
    categories = {name: Category.objects.get_or_create(name=name)[0] for name in names}
    by_key: dict[str, Ticket] = {}
    for place, entry in enumerate(entries):
        ticket = _Story(entry, place, people, categories).tell(by_key)
        by_key[entry.get("key", "")] = ticket
    return len(entries)


class _Story:
    """One ticket of the demo and what happened to it, hour after hour, up to now."""

    def __init__(
        self, entry: dict[str, Any], place: int, people: dict[str, User], categories: dict[str, Category]
    ) -> None:
        self.entry = entry
        self.people = people
        self.category = categories[entry["category"]]
        self.moment = clock.now() - entry["age"]
        self.step = min(timedelta(minutes=25 + 13 * place % 240), (clock.now() - self.moment) / 12)

    def tell(self, others: dict[str, Ticket]) -> Ticket:
        ticket = self._create()
        agent = self.people.get(self.entry.get("assignee", ""))
        if agent:
            self._change(ticket, agent, assignee=agent, status="open")
        for comment in self.entry.get("comments", []):
            self._comment(ticket, comment)
        self._finish(ticket, agent)
        if "merged_into" in self.entry:
            target = others[self.entry["merged_into"]]
            with self._next():
                ticket.merge_into(target, by=target.assignee, via=Via.ADMIN)
        return ticket

    def _next(self) -> Any:
        self.moment += self.step
        return clock.at(self.moment)

    def _create(self) -> Ticket:
        with clock.at(self.moment):
            return create_ticket(
                reporter=self.people[self.entry["reporter"]],
                title=self.entry["title"],
                description=self.entry["description"],
                priority=self.entry.get("priority", Ticket.Priority.NORMAL),
                category=self.category,
                source=Ticket.Source.IMPORT,
            )

    def _change(self, ticket: Ticket, by: User, **changes: Any) -> None:
        with self._next():
            ticket.change(by=by, via=Via.ADMIN, **changes)

    def _comment(self, ticket: Ticket, comment: dict[str, Any]) -> None:
        with self._next():
            author = self.people[comment["by"]]
            ticket.add_comment(
                by=author, body=comment["body"], internal=comment.get("internal", False), via=Via.ADMIN
            )

    def _finish(self, ticket: Ticket, agent: User | None) -> None:
        status = self.entry["status"]
        if agent and status in ("resolved", "closed"):
            self._change(ticket, agent, status="resolved", resolution=self.entry["resolution"])
        if agent and status != ticket.status:
            self._change(ticket, agent, status=status)
