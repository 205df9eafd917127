"""What every test gets: no network but loopback, and fixtures for a real web server and a real browser."""

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest
import uvicorn

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The background requests of a browser would run into the closed network, many at a time.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class NetworkUsed(AssertionError):
    """A test tried to leave this machine."""


def _is_local(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """Sockets reach this machine only, names of other machines are not looked up."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX and not _is_local(address[0]):
            raise NetworkUsed(f"a test tried to connect to {address}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        check(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        check(self, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_local(host):
            raise NetworkUsed(f"a test tried to look up {host!r}")
        return getaddrinfo(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A request in German leaves its language behind in the thread; the next test starts in English."""
    from django.utils import translation

    with translation.override("en"):
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Threads of the product keep their connections for a while; the test database goes all the same."""
    yield
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


class _QuietServer(uvicorn.Server):
    """Runs in a thread, where no signal handler may be installed; says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.listening.set()


@pytest.fixture
def asgi_server(transactional_db: None) -> Iterator[str]:
    """The site under uvicorn on the test database, in a thread of this process: its address without slash.

    `settings` of the test count there as well.
    """
    from django.core.asgi import get_asgi_application

    from helpdesk.turnstile import Turnstile

    listener = socket.create_server(("127.0.0.1", 0))
    application = Turnstile(get_asgi_application())
    config = uvicorn.Config(
        application, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=2
    )
    server = _QuietServer(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="asgi-server", daemon=True
    )
    thread.start()
    assert server.listening.wait(30), "the web server did not start"
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()
    assert not thread.is_alive(), "a request of the test still runs"


@pytest.fixture(scope="session")
def browser_path() -> str:
    """The installed Chromium. Without one the browser tests are skipped, but never in CI."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path:
        return path
    if os.environ.get("CI"):
        pytest.fail("no Chromium on this machine: `.ci/run` installs it with apt-get")
    pytest.skip("no Chromium on this machine (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser(browser_path: str) -> Iterator[Any]:
    """A headless Chromium under Playwright (sync API), for one module only: Playwright runs an event loop in
    this thread, and a test that wants one of its own could not run beside it."""
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Django would refuse the ORM beside that loop
        chromium = playwright.chromium.launch(executable_path=browser_path, args=BROWSER_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, asgi_server: str) -> Iterator[Any]:
    """A fresh browser window on the site; a script error or a refused resource fails the test."""
    context = browser.new_context(base_url=asgi_server, locale="en-GB")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.script_errors = errors
    yield page
    context.close()
    assert not errors, errors
