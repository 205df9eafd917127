"""The samples for servers say what the product needs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import reverse

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return found


@pytest.mark.parametrize("name", ["migrate", "web", "worker"])
def test_containers_may_do_little(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert {"memory", "cpus", "pids"} <= service["deploy"]["resources"]["limits"].keys()
    assert "USER helpdesk" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("name", ["db", "web", "worker"])
def test_containers_that_stay_are_looked_after(name: str) -> None:
    service = services()[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] == "CMD"


def test_the_snippets_of_the_health_checks_are_python() -> None:
    for name in ("web", "worker"):
        compile(services()[name]["healthcheck"]["test"][-1], name, "exec")


def test_migrations_come_once_and_first() -> None:
    assert services()["migrate"]["restart"] == "no"
    for name in ("web", "worker"):
        assert services()[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_the_proxies_let_the_stream_through() -> None:
    stream = reverse("assistant:stream", args=[12, 345])
    nginx = (DEPLOY / "nginx.conf").read_text()
    (pattern,) = re.findall(r"location ~ (\S+stream\S+) \{[^}]*proxy_buffering off;", nginx)
    assert re.search(pattern, stream)
    (pattern,) = re.findall(r"path_regexp (\S+)", (DEPLOY / "Caddyfile").read_text())
    assert re.search(pattern, stream)
    assert "X-Forwarded-Proto $scheme" in nginx


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("systemd/*.service")), ids=lambda path: path.name)
def test_units_run_what_there_is_without_rights(path: Path) -> None:
    unit = path.read_text()
    (command,) = re.findall(r"manage\.py (\w+)", unit) or ["uvicorn"]
    commands = {found.stem for found in ROOT.glob("*/management/commands/*.py")} | {"uvicorn"}
    assert command in commands
    assert re.search(r"^User=helpdesk$", unit, flags=re.M)
    assert {"NoNewPrivileges=yes", "ProtectSystem=strict"} <= set(unit.splitlines())
