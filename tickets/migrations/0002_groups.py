from django.contrib.auth.management import create_permissions
from django.db import migrations

from tickets.roles import PERMISSIONS, create_groups


def create(apps, schema_editor):
    # Permissions are created after all migrations have run; the groups need them now.
    for label in ("auth", "tickets"):
        app = apps.get_app_config(label)
        app.models_module = True
        create_permissions(app, apps=apps, verbosity=0, using=schema_editor.connection.alias)
        app.models_module = None
    create_groups(apps.get_model("auth", "Group"), apps.get_model("auth", "Permission"))


def remove(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name__in=PERMISSIONS).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("tickets", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(create, remove)]
