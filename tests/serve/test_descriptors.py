"""The server keeps the file descriptors that it needs, however many connections clients open."""

import re
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from ouzel.config import LimitsConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.descriptors import with_max_connections
from tests.serve.running import failure, serving

ASK = {"model": "ouzel-demo", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 4}
MAX_FILES = 256
WITH_FEW_FILES = ("sh", "-c", f'ulimit -n {MAX_FILES} && exec "$@"', "sh")


@pytest.mark.release("a replica that is killed, a server that dies beside another")
def test_the_engine_comes_back_while_clients_hold_every_connection(tmp_path: Path) -> None:
    with serving(cache_dir=tmp_path, wrapper=WITH_FEW_FILES) as server, ExitStack() as stack:
        url = httpx.URL(server.root)
        for number in range(2 * MAX_FILES):
            connection = stack.enter_context(socket.create_connection((url.host, url.port)))
            if number % 2:
                connection.send(b"GET / HTTP/1.1\r\nX: ")
        engine = server.engine_process()
        engine.kill()
        engine.wait()
        while httpx.get(f"{server.root}/health", timeout=None).status_code != 200:
            time.sleep(0.02)
        assert server.engine_process().pid != engine.pid
        assert (
            httpx.post(f"{server.url}/chat/completions", json=ASK, timeout=None).status_code == 200
        )


def test_more_connections_than_descriptors_are_an_error(tmp_path: Path) -> None:
    error = failure("--max-connections", "100000000", cache_dir=tmp_path)
    assert error.startswith("ouzel: --max-connections: must be <= ")


def most_connections(*, has_metrics_port: bool) -> int:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with pytest.raises(InvalidOption) as error:
            with_max_connections(
                LimitsConfig(max_connections=10**9), has_metrics_port=has_metrics_port
            )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    found = re.search(r"must be <= (\d+) ", str(error.value))
    assert found is not None
    return int(found[1])


def test_a_port_for_metrics_has_descriptors_of_its_own() -> None:
    assert (
        most_connections(has_metrics_port=False) - most_connections(has_metrics_port=True)
        == 64 + 32
    )
