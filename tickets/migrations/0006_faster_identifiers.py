from pathlib import Path

from django.db import migrations

FUNCTION = (Path(__file__).parent / "sql" / "0006_faster_identifiers.sql").read_text(encoding="utf-8")


class Migration(migrations.Migration):

    dependencies = [
        ('tickets', '0005_bulk_runs_and_list_indexes'),
    ]

    operations = [
        # Both versions find the same, hence nothing to compute anew, and nothing to put back.
        migrations.RunSQL([FUNCTION], migrations.RunSQL.noop),
    ]
