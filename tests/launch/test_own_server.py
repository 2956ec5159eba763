"""`--serve` starts a server for the client, and stops it when the client ends."""

import socket
from urllib.parse import urlsplit

import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.launch.launching import Machine, ModelServer

pytestmark = pytest.mark.serves


def find_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_the_server_lives_as_long_as_the_client(machine: Machine) -> None:
    url = find_url()
    machine.install("codex", status=3)
    variables = {"OUZEL_CACHE_DIR": str(machine.root / "cache")}
    serve = ("--serve", str(MODEL_DIRECTORY), "--model", "demo")
    ended = machine.launch("codex", "--url", url, *serve, variables=variables)

    assert ended.status == 3, ended.errors
    started = machine.started()
    assert started is not None
    assert 'model="demo"' in started.arguments
    assert "the server is stopped" in (machine.settings("codex") / "server.log").read_text()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))


def test_the_last_line_of_a_server_that_ends_is_shown(machine: Machine) -> None:
    machine.install("codex")
    ended = machine.launch("codex", "--url", find_url(), "--serve", str(machine.root / "nothing"))

    assert ended.status == 1
    assert "ended with 1: ouzel: there is no directory" in ended.errors
    assert machine.started() is None


def test_a_server_that_runs_already_is_not_replaced(machine: Machine, server: ModelServer) -> None:
    machine.install("codex")
    ended = machine.launch("codex", "--url", server.url, "--serve", str(MODEL_DIRECTORY))

    assert ended.status == 1
    assert "a server answers" in ended.errors
    assert machine.started() is None
