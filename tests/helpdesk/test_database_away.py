"""The web process while its database is away, and when it comes back."""

import httpx
import pytest

from tests.processes import free_port, started, wait_for

pytestmark = pytest.mark.slow


def get(address: str, **headers: str) -> httpx.Response | None:
    try:
        return httpx.get(address, headers=headers, timeout=10)
    except httpx.ConnectError:
        return None


def test_calm_answers_instead_of_errors() -> None:
    port = free_port()
    settings = {
        "PYTHONWARNINGS": "default",  # no static files have been collected
        "SECRET_KEY": "x",
        "ALLOWED_HOSTS": "127.0.0.1",
        "ASSISTANT_BACKEND": "rehearsal",
        "COOKIES_OVER_HTTPS_ONLY": "off",
        "DATABASE_URL": "postgres://helpdesk:geheim@127.0.0.1:1/helpdesk",
    }
    site = f"http://127.0.0.1:{port}"
    with started("-m", "uvicorn", "helpdesk.asgi:application", "--port", str(port), **settings) as process:
        health = wait_for(lambda: get(f"{site}/healthz"))
        assert health.status_code == 503
        assert [reason["code"] for reason in health.json()["reasons"]] == ["database"]

        visitor = {"Cookie": "sessionid=of-a-former-visit"}
        page = httpx.get(f"{site}/admin/", headers=visitor | {"Accept": "text/html", "Accept-Language": "en"})
        assert page.status_code == 503
        assert "The database cannot be reached at the moment" in page.text
        assert page.headers["Retry-After"] == "30"
        assert "sessionid" not in page.headers.get("Set-Cookie", ""), "the person stays logged in"

        data = httpx.get(f"{site}/admin/", headers=visitor | {"Accept": "application/json"})
        assert data.status_code == 503
        assert "database" in data.json()["detail"]

        process.terminate()
        output = process.communicate(timeout=30)[0]
        assert "geheim" not in output
        assert "Traceback" not in output
