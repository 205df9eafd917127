"""What each setting accepts, and the one sentence for what it does not."""

import re
from pathlib import Path

import environ
import pytest

from helpdesk import configuration as read
from helpdesk.configuration import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
NAME = "SOME_SETTING"


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> environ.Env:
    monkeypatch.delenv(NAME, raising=False)
    return environ.Env()


def refusal(call: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        call()  # type: ignore[operator]
    return str(caught.value)


@pytest.mark.parametrize(("value", "expected"), [("on", True), ("1", True), ("FALSE", False), ("", True)])
def test_flag(env: environ.Env, monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv(NAME, value)
    assert read.flag(env, NAME, default=True) is expected


def test_flag_of_neither_kind(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "perhaps")
    assert (
        refusal(lambda: read.flag(env, NAME, default=True))
        == f"{NAME} is 'perhaps': set it to 'on' or 'off'."
    )


@pytest.mark.parametrize("value", ["many", "1.5", "0", "-3", "11", "1e3"])
def test_integer_refused(env: environ.Env, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)
    sentence = refusal(lambda: read.integer(env, NAME, 5, maximum=10))
    assert sentence.startswith(f"{NAME} is ")
    assert "set it to a" in sentence


def test_integer_at_its_bounds(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read.integer(env, NAME, 5) == 5
    for value in (1, 10):
        monkeypatch.setenv(NAME, f" {value} ")
        assert read.integer(env, NAME, 5, maximum=10) == value


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "90000"])
def test_seconds_refused(env: environ.Env, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)
    assert NAME in refusal(lambda: read.seconds(env, NAME, 5))


@pytest.mark.parametrize(
    "value", ["api.example.com/v1", "ftp://example.com", "https://", "//example.com", "http:"]
)
def test_url_without_scheme_or_host(env: environ.Env, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)
    assert "write it with its scheme" in refusal(lambda: read.url(env, NAME))


def test_url_loses_its_slash(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "http://127.0.0.1:8011/v1/")
    assert read.url(env, NAME) == "http://127.0.0.1:8011/v1"


def test_choice(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read.choice(env, NAME, "a", ("a", "b")) == "a"
    monkeypatch.setenv(NAME, "c")
    assert (
        refusal(lambda: read.choice(env, NAME, "a", ("a", "b"))) == f"{NAME} is 'c': set it to one of a, b."
    )


def test_optional_choice_tells_empty_from_unset(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read.optional_choice(env, NAME, "low", ("low", "high")) == "low"
    monkeypatch.setenv(NAME, "")
    assert read.optional_choice(env, NAME, "low", ("low", "high")) == ""
    monkeypatch.setenv(NAME, "lowest")
    assert NAME in refusal(lambda: read.optional_choice(env, NAME, "low", ("low", "high")))


def test_time_zone(env: environ.Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "Europe/Berlin")
    assert read.time_zone(env, NAME, "UTC") == "Europe/Berlin"
    monkeypatch.setenv(NAME, "Berlin, Germany")
    assert "Europe/Berlin" in refusal(lambda: read.time_zone(env, NAME, "UTC"))


@pytest.mark.parametrize(
    "key", ["", "placeholder", "changeme", "your-key-here", "<key>", "xxxxxxxx", "...", " "]
)
def test_placeholders(key: str) -> None:
    assert read.is_placeholder(key)


@pytest.mark.parametrize("key", ["pa-4f9a", "al-77", "sk-ant-api03-x"])
def test_real_keys(key: str) -> None:
    assert not read.is_placeholder(key)


@pytest.mark.parametrize(("model", "size"), [("voyage-4", 2048), ("voyage-3", 1024), ("a-future-model", 256)])
def test_dimensions_that_exist(model: str, size: int) -> None:
    read.check_voyage_dimensions(model, size)


@pytest.mark.parametrize(("model", "size"), [("voyage-4", 768), ("voyage-3", 512), ("voyage-code-2", 1024)])
def test_dimensions_that_the_model_lacks(model: str, size: int) -> None:
    sentence = refusal(lambda: read.check_voyage_dimensions(model, size))
    assert f"VOYAGE_DIMENSIONS is {size}" in sentence
    assert model in sentence


def test_the_example_file_lists_every_setting() -> None:
    source = (ROOT / "helpdesk" / "settings.py").read_text()
    names = set(re.findall(r"read\.\w+\(\s*env,\s*\"([A-Z_]+)\"|env\.str\(\"([A-Z_]+)\"", source))
    settings = {first or second for first, second in names}
    listed = set(re.findall(r"^(?:# )?([A-Z_]+)=", (ROOT / ".env.example").read_text(), flags=re.M))
    assert len(settings) > 30
    assert listed == settings | {"HOST", "PORT", "POSTGRES_PASSWORD"}
