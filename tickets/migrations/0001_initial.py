from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import tickets.clock
import tickets.fields
from django.conf import settings
from django.db import migrations, models

FUNCTIONS = (Path(__file__).parent / "sql" / "0001_functions.sql").read_text(encoding="utf-8")
DROP_FUNCTIONS = """
DROP FUNCTION tickets_refuse_event_update;
DROP FUNCTION ticket_search_words;
DROP FUNCTION ticket_content_hash;
DROP FUNCTION ticket_identifiers;
DROP FUNCTION text_identifiers;
DROP FUNCTION looks_like_identifier;
"""
APPEND_ONLY = """
CREATE TRIGGER tickets_append_only BEFORE UPDATE ON tickets_ticketevent
    FOR EACH STATEMENT EXECUTE FUNCTION tickets_refuse_event_update();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL([FUNCTIONS], [DROP_FUNCTIONS]),
        migrations.CreateModel(
            name='Category',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', tickets.fields.TitleField(max_length=80, validators=[tickets.fields.refuse_blank], verbose_name='name')),
            ],
            options={
                'verbose_name': 'category',
                'verbose_name_plural': 'categories',
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='tickets_category_name', violation_error_message='There is already a category with this name.')],
            },
        ),
        migrations.CreateModel(
            name='Ticket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', tickets.fields.TitleField(max_length=200, validators=[tickets.fields.refuse_blank], verbose_name='title')),
                ('description', tickets.fields.CleanTextField(blank=True, validators=[django.core.validators.MaxLengthValidator(1000000)], verbose_name='description')),
                ('status', models.CharField(choices=[('new', 'new'), ('open', 'open'), ('pending', 'pending'), ('resolved', 'resolved'), ('closed', 'closed')], default='new', max_length=10, verbose_name='status')),
                ('priority', models.CharField(choices=[('low', 'low'), ('normal', 'normal'), ('high', 'high'), ('urgent', 'urgent')], default='normal', max_length=10, verbose_name='priority')),
                ('source', models.CharField(choices=[('chat', 'chat'), ('admin', 'admin'), ('api', 'API'), ('import', 'import')], default='admin', max_length=10, verbose_name='source')),
                ('resolution', tickets.fields.CleanTextField(blank=True, help_text='How it was solved: the next person with this problem will read it.', validators=[django.core.validators.MaxLengthValidator(1000000)], verbose_name='resolution')),
                ('duplicate_check', models.CharField(choices=[('not_needed', 'not needed'), ('searched', 'searched'), ('unavailable', 'search was unavailable'), ('skipped', 'skipped')], default='not_needed', max_length=12, verbose_name='duplicate check')),
                ('created_at', models.DateTimeField(default=tickets.clock.now, editable=False, verbose_name='created')),
                ('updated_at', models.DateTimeField(default=tickets.clock.now, editable=False, verbose_name='updated')),
                ('resolved_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='resolved at')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('status_before_merge', models.CharField(blank=True, editable=False, max_length=10)),
                ('resolved_at_before_merge', models.DateTimeField(editable=False, null=True)),
                ('content_hash', models.GeneratedField(db_persist=True, expression=models.Func(models.F('title'), models.F('description'), function='ticket_content_hash'), output_field=models.BinaryField())),
                ('identifiers', models.GeneratedField(db_persist=True, expression=models.Func(models.F('title'), models.F('description'), function='ticket_identifiers'), output_field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None))),
                ('search_words', models.GeneratedField(db_persist=True, expression=models.Func(models.F('title'), models.F('description'), function='ticket_search_words'), output_field=tickets.fields.UnselectedSearchVectorField())),
                ('assignee', models.ForeignKey(blank=True, error_messages={'invalid': 'Tickets can only be assigned to staff.'}, limit_choices_to={'is_staff': True}, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assigned_tickets', to=settings.AUTH_USER_MODEL, verbose_name='assignee')),
                ('category', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='tickets', to='tickets.category', verbose_name='category')),
                ('duplicate_of', models.ForeignKey(blank=True, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duplicates', to='tickets.ticket', verbose_name='duplicate of')),
                ('reporter', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reported_tickets', to=settings.AUTH_USER_MODEL, verbose_name='reporter')),
            ],
            options={
                'verbose_name': 'ticket',
                'verbose_name_plural': 'tickets',
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('body', tickets.fields.CleanTextField(validators=[tickets.fields.refuse_blank, django.core.validators.MaxLengthValidator(1000000)], verbose_name='comment')),
                ('internal', models.BooleanField(default=False, help_text='For colleagues only, not for the reporter.', verbose_name='internal')),
                ('created_at', models.DateTimeField(default=tickets.clock.now, editable=False, verbose_name='created')),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ticket_comments', to=settings.AUTH_USER_MODEL, verbose_name='author')),
                ('ticket', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='tickets.ticket', verbose_name='ticket')),
            ],
            options={
                'verbose_name': 'comment',
                'verbose_name_plural': 'comments',
                'ordering': ['created_at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='TicketEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(help_text='Version of the ticket after the event.')),
                ('kind', models.CharField(choices=[('created', 'created'), ('changed', 'changed'), ('commented', 'commented'), ('merged', 'merged into'), ('unmerged', 'merge undone'), ('duplicate_added', 'duplicate added'), ('duplicate_removed', 'duplicate removed')], max_length=20, verbose_name='kind')),
                ('field', models.CharField(blank=True, max_length=30, verbose_name='field')),
                ('old', models.TextField(blank=True, verbose_name='before')),
                ('new', models.TextField(blank=True, verbose_name='after')),
                ('old_ref', models.BigIntegerField(blank=True, null=True)),
                ('new_ref', models.BigIntegerField(blank=True, null=True)),
                ('via', models.CharField(choices=[('chat', 'chat'), ('admin', 'admin'), ('api', 'API'), ('import', 'import'), ('system', 'system')], max_length=10, verbose_name='via')),
                ('created_at', models.DateTimeField(default=tickets.clock.now, editable=False, verbose_name='when')),
                ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ticket_events', to=settings.AUTH_USER_MODEL, verbose_name='who')),
                ('ticket', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='tickets.ticket', verbose_name='ticket')),
            ],
            options={
                'verbose_name': 'event',
                'verbose_name_plural': 'history',
                'ordering': ['created_at', 'pk'],
            },
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=django.contrib.postgres.indexes.GinIndex(fields=['identifiers'], name='tickets_identifiers'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=django.contrib.postgres.indexes.GinIndex(fields=['search_words'], name='tickets_search_words'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(fields=['-created_at', '-id'], name='tickets_created'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(fields=['-updated_at'], name='tickets_updated'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(fields=['status', '-created_at'], name='tickets_status_created'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(condition=models.Q(('status__in', ('new', 'open', 'pending'))), fields=['assignee', '-created_at'], name='tickets_unresolved_assignee'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(condition=models.Q(('status__in', ('new', 'open', 'pending'))), fields=['priority', '-created_at'], name='tickets_unresolved_priority'),
        ),
        migrations.AddIndex(
            model_name='ticket',
            index=models.Index(condition=models.Q(('duplicate_of__isnull', False)), fields=['duplicate_of'], name='tickets_duplicate_of'),
        ),
        migrations.AddConstraint(
            model_name='ticket',
            constraint=models.UniqueConstraint(fields=('id',), include=('content_hash',), name='tickets_ticket_id_hash'),
        ),
        migrations.AddConstraint(
            model_name='ticket',
            constraint=models.CheckConstraint(condition=models.Q(('duplicate_of__isnull', True), models.Q(('duplicate_of', models.F('id')), _negated=True), _connector='OR'), name='tickets_not_its_own_duplicate'),
        ),
        migrations.RunSQL([APPEND_ONLY], ["DROP TRIGGER tickets_append_only ON tickets_ticketevent"]),
    ]
