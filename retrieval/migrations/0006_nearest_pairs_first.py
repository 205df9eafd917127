from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Built beside the running service.
    atomic = False

    dependencies = [
        ("retrieval", "0005_pairs_set_aside"),
    ]

    operations = [
        RemoveIndexConcurrently(
            model_name="duplicatecandidate",
            name="retrieval_candidate_waiting",
        ),
        AddIndexConcurrently(
            model_name="duplicatecandidate",
            index=models.Index(
                models.OrderBy(models.F("postponed_at"), nulls_first=True),
                models.OrderBy(models.F("likely"), descending=True),
                models.OrderBy(models.F("similarity"), descending=True, nulls_last=True),
                models.F("created_at"),
                models.F("id"),
                condition=models.Q(("state", "open")),
                name="retrieval_candidate_waiting",
            ),
        ),
    ]
