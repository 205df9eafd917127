from django.contrib.auth.management import create_permissions
from django.db import migrations

GROUP = "supervisor"
SEEN = {
    "assistant": ["turn", "toolcall"],
    "retrieval": [
        "ticketembedding", "indexstate", "workerstate", "searchprofile", "searchlog", "verdict",
        "duplicatecheck", "duplicatecandidate", "incident",
    ],
}


def permissions(apps):
    codenames = {label: [f"view_{model}" for model in models] for label, models in SEEN.items()}
    model = apps.get_model("auth", "Permission")
    return [
        permission
        for label, names in codenames.items()
        for permission in model.objects.filter(content_type__app_label=label, codename__in=names)
    ]


def add(apps, schema_editor):
    # Permissions are created after all migrations have run; the group needs them now.
    for label in SEEN:
        app = apps.get_app_config(label)
        app.models_module = True
        create_permissions(app, apps=apps, verbosity=0, using=schema_editor.connection.alias)
        app.models_module = None
    grant(apps)


def grant(apps):
    for group in apps.get_model("auth", "Group").objects.filter(name=GROUP):
        group.permissions.add(*permissions(apps))


def remove(apps, schema_editor):
    for group in apps.get_model("auth", "Group").objects.filter(name=GROUP):
        group.permissions.remove(*permissions(apps))


class Migration(migrations.Migration):
    dependencies = [
        ("assistant", "0001_initial"),
        ("retrieval", "0002_duplicates_and_incidents"),
        ("tickets", "0002_groups"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(add, remove)]
