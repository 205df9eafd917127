"""The guards of the test run itself."""

import socket
import urllib.request

import pytest

from tests.conftest import NetworkUsed


def test_a_socket_that_leaves_this_machine_is_refused() -> None:
    with socket.socket() as sock, pytest.raises(NetworkUsed):
        sock.connect(("192.0.2.1", 80))


def test_other_machines_are_not_looked_up() -> None:
    with pytest.raises(NetworkUsed):
        socket.getaddrinfo("api.example.com", 443)


def test_the_web_server_of_the_tests_answers(asgi_server: str) -> None:
    with urllib.request.urlopen(f"{asgi_server}/healthz?part=web") as response:
        assert response.status == 200
