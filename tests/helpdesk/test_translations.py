"""Every sentence of the code that people read has its German.

Sentences are collected from the code itself, whatever name the translation function has there: an alias
that makemessages does not know once left three dozen of them untranslated without a sign.
"""

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("assistant", "helpdesk", "retrieval", "tickets")
FUNCTIONS = {"gettext", "gettext_lazy", "gettext_noop"}
IN_TEMPLATES = re.compile(r"""{% *translate +(["'])(.+?)\1""")


def names_of_functions(tree: ast.AST) -> set[str]:
    return {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for name in node.names
        if name.name in FUNCTIONS
    }


def sentences_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.suffix == ".html":
        yield from (sentence for _quote, sentence in IN_TEMPLATES.findall(text))
        return
    tree = ast.parse(text)
    names = names_of_functions(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


SOURCES = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
SOURCES += sorted((ROOT / "templates").rglob("*.html"))


@pytest.fixture(scope="module")
def german() -> gettext.GNUTranslations:
    with (ROOT / "locale/de/LC_MESSAGES/django.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def test_every_sentence_is_translated(german: gettext.GNUTranslations) -> None:
    known = german._catalog  # type: ignore[attr-defined]  # there is no public way to ask
    missing = {
        f"{path.relative_to(ROOT)}: {sentence}"
        for path in SOURCES
        for sentence in sentences_in(path)
        if sentence and sentence not in known
    }
    assert not missing


def test_sentences_are_found() -> None:
    assert sum(1 for path in SOURCES for _sentence in sentences_in(path)) > 500
