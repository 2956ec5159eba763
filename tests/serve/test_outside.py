"""Nothing leaves the machine: a server with a local model connects to nobody and leaves no files.

The test starts one server and asks it once. The home directory is empty, all proxies lead to a
socket of the test, and strace, where it is installed, records each address that a process of the
server wanted to reach.
"""

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.serve.running import send, serving

# 1: where it is missing, a test fails that would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_STRACE"
CALLS = "connect,sendto,sendmsg,sendmmsg"  # system calls that can reach another machine
# With these variables libraries take the process for a test, and report no usage.
CI_VARIABLES = {"CI", "TF_BUILD", "JENKINS_URL", "GITHUB_ACTIONS", "HF_HUB_OFFLINE", "DO_NOT_TRACK"}
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Traces:
    """Traces of a server that was started, asked and stopped."""

    answer: str
    home: Path
    callers: list[str]  # addresses that connected to the proxy
    calls: str | None  # strace's lines; None where there is no strace


def strace() -> str | None:
    """Returns None where it is missing, and where processes may not be traced."""
    path = shutil.which("strace")
    if (
        path is None
        or subprocess.run([path, "-qq", "-o", os.devnull, "true"], check=False).returncode
    ):
        return None
    return path


@contextmanager
def proxy(callers: list[str]) -> Iterator[str]:
    """Yields the URL of a proxy that closes each connection."""

    def hang_up() -> None:
        with suppress(OSError):  # the socket was shut down
            while True:
                connection, address = listener.accept()
                callers.append(str(address))
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=hang_up)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    directory = tmp_path_factory.mktemp("outside")
    home, record = directory / "home", directory / "calls"
    home.mkdir()
    tracer = strace()
    # -D: the server stays a child of the test, and strace becomes a child of the server;
    # --seccomp-bpf: other system calls are not slowed down.
    options = ["-D", "-f", "-qq", "--seccomp-bpf", "-e", f"trace={CALLS}", "-o", str(record)]
    callers: list[str] = []
    with proxy(callers) as url:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in CI_VARIABLES
            and not name.startswith("XDG_")
            and name.lower() != "no_proxy"
        }
        environment = kept | {"HOME": str(home)} | dict.fromkeys(PROXIES, url)
        wrapper = [tracer, *options] if tracer else []
        with serving(
            cache_dir=directory / "cache", environment=environment, wrapper=wrapper
        ) as server:
            answer = send(server.curl)["choices"][0]["message"]["content"]
    return Traces(answer, home, callers, record.read_text() if tracer else None)


def test_no_connection_reaches_the_proxy_and_the_home_directory_stays_empty(traces: Traces) -> None:
    assert traces.answer
    assert traces.callers == []
    assert list(traces.home.rglob("*")) == []


def test_no_process_of_the_server_calls_an_address(traces: Traces) -> None:
    if traces.calls is None:
        missing = "strace is not installed here, or may not trace"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)

    assert "sendto(" in traces.calls  # asyncio wakes its loop so; strace has recorded the process
    assert re.findall(r".*sin6?_addr.*", traces.calls) == []
