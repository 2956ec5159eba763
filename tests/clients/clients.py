"""Runs a client as its user does: its own program or interpreter, and the settings that the documents give."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.cli.running import RunningServer
from tests.clients.installing import NotInstalledError, installed

REQUIRED_VARIABLE = "OUZEL_TESTS_NEED_CLIENTS"  # 1: a client that cannot be installed fails tests that would be skipped
DOCUMENTS = Path(__file__).parent.parent.parent / "docs"
DOCUMENTED_ROOT = "http://127.0.0.1:8000"
# What a client wants of other machines fails at once: there is nothing at this port.
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
LOCAL = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def packages(name: str) -> Path:
    """The directory of a set of packages; without it the test is skipped."""
    outcome = installed(name)
    if isinstance(outcome, NotInstalledError):
        missing = f"the packages {name} could not be installed: {outcome}"
        if os.environ.get(REQUIRED_VARIABLE) == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return outcome


@dataclass(frozen=True)
class Clients:
    server: RunningServer
    home: Path  # an empty one, where clients keep what they keep

    def block(self, page: str, language: str, *, containing: str = "") -> str:
        """The one block of a page in docs/connect/ that holds such a text, with this server's address."""
        text = (DOCUMENTS / "connect" / f"{page}.md").read_text()
        blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        [block] = [block for block in blocks if containing in block]
        return str(block).replace(DOCUMENTED_ROOT, self.server.root)

    def exports(self, page: str) -> dict[str, str]:
        """The variables that a page's lines export."""
        return dict(re.findall(r"^export (\w+)=(\S+)$", self.block(page, "sh", containing="export "), re.M))

    def variables(self, further: Mapping[str, str]) -> dict[str, str]:
        """A client's environment, with nothing of this user's but the search path."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), **NO_NETWORK, **LOCAL, **further}

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
        assert result.returncode == 0, f"{command[0]} ended with {result.returncode}: {result.stdout}{result.stderr}"
        return result
