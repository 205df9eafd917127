"""Objects for tests. Tickets are created through the service, so that they have a history as in life."""

from typing import Any, Protocol, TypeVar, cast

import factory
from django.contrib.auth.models import Permission, User
from factory.django import DjangoModelFactory

from tickets.models import Category, Comment, Ticket, Via
from tickets.services import create_ticket

Made = TypeVar("Made", covariant=True)


class Factory(Protocol[Made]):
    """What tests use of a factory. Calling one makes an object, which type checkers do not see."""

    def __call__(self, **given: Any) -> Made: ...

    def create_batch(self, size: int, **given: Any) -> list[Any]: ...


AGENT = ["view_ticket", "add_ticket", "change_ticket", "add_comment"]


def grant(user: User, codenames: list[str]) -> None:
    user.user_permissions.add(
        *Permission.objects.filter(content_type__app_label="tickets", codename__in=codenames)
    )


class _User(DjangoModelFactory[User]):
    """A person without rights. `UserFactory(agent=True)`: staff that may view, add, change and comment."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    password = factory.django.Password("secret")

    class Params:
        agent = factory.Trait(
            is_staff=True,
            granted=factory.PostGeneration(lambda user, create, given, **kwargs: grant(user, AGENT)),
        )

    @factory.post_generation
    def permissions(self: User, create: bool, codenames: list[str] | None, **kwargs: Any) -> None:
        """`UserFactory(permissions=["view_ticket"])`: permissions of the tickets app."""
        if create and codenames:
            grant(self, codenames)


class _Category(DjangoModelFactory[Category]):
    class Meta:
        model = Category

    name = factory.Sequence(lambda n: f"Category {n}")


class _Ticket(DjangoModelFactory[Ticket]):
    """What `create_ticket()` does not take (status, created_at …) is written behind it, without events."""

    class Meta:
        model = Ticket

    title = factory.Sequence(lambda n: f"Ticket {n}")
    description = ""
    reporter = factory.SubFactory(_User)
    source = Ticket.Source.CHAT

    @classmethod
    def _create(cls, model_class: type[Ticket], *args: Any, **kwargs: Any) -> Ticket:
        afterwards = {
            name: kwargs.pop(name)
            for name in ("status", "resolution", "created_at", "updated_at", "resolved_at", "duplicate_of")
            if name in kwargs
        }
        ticket = create_ticket(**kwargs)
        if afterwards:
            Ticket.objects.filter(pk=ticket.pk).update(**afterwards)
            ticket.refresh_from_db()
        return ticket


class _Comment(DjangoModelFactory[Comment]):
    class Meta:
        model = Comment

    ticket = factory.SubFactory(_Ticket)
    by = factory.SubFactory(_User)
    body = "Me too."
    internal = False
    via = Via.CHAT

    @classmethod
    def _create(cls, model_class: type[Comment], *args: Any, **kwargs: Any) -> Comment:
        ticket: Ticket = kwargs.pop("ticket")
        return ticket.add_comment(**kwargs)


UserFactory = cast(Factory[User], _User)
CategoryFactory = cast(Factory[Category], _Category)
TicketFactory = cast(Factory[Ticket], _Ticket)
CommentFactory = cast(Factory[Comment], _Comment)
