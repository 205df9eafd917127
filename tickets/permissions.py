"""Who may do what. Staff only, and Django's permissions: the same answer for admin, API, chat and tools."""

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User

Person = User | AbstractBaseUser | AnonymousUser


def may(user: Person, permission: str) -> bool:
    """Whether `user` is active staff and holds `permission` (without app label, such as "view_ticket")."""
    if not isinstance(user, User) or not (user.is_active and user.is_staff):
        return False
    return user.has_perm(f"tickets.{permission}")


def may_view(user: Person) -> bool:
    return may(user, "view_ticket")


def may_add(user: Person) -> bool:
    return may(user, "add_ticket")


def may_change(user: Person) -> bool:
    """Change fields, merge and unmerge."""
    return may(user, "change_ticket")


def may_import(user: Person) -> bool:
    """Import a file, which sets status, assignee and resolution as well."""
    return may_add(user) and may_change(user)


def may_comment(user: Person) -> bool:
    return may_view(user) and may(user, "add_comment")
