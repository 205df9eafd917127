"""The groups that come with the product and what their members may do."""

from typing import Any

AGENT = "agent"
SUPERVISOR = "supervisor"

_AGENT_PERMISSIONS = [
    "tickets.view_ticket",
    "tickets.add_ticket",
    "tickets.change_ticket",
    "tickets.view_comment",
    "tickets.add_comment",
    "tickets.view_category",
    "tickets.view_ticketevent",
    "auth.view_user",  # to choose a reporter or an assignee
]
PERMISSIONS = {
    AGENT: _AGENT_PERMISSIONS,
    SUPERVISOR: [
        *_AGENT_PERMISSIONS,
        "tickets.delete_ticket",
        "tickets.add_category",
        "tickets.change_category",
        "tickets.delete_category",
    ],
}


def create_groups(group_model: Any, permission_model: Any) -> None:
    """Create the groups that do not exist. One that exists is left as its administrator has made it.

    Takes the models, because a migration has its own versions of them.
    """
    for name, permissions in PERMISSIONS.items():
        group, is_new = group_model.objects.get_or_create(name=name)
        if is_new:
            group.permissions.set([_permission(permission_model, each) for each in permissions])


def _permission(permission_model: Any, name: str) -> Any:
    app, codename = name.split(".")
    return permission_model.objects.get(content_type__app_label=app, codename=codename)
