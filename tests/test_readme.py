"""The README's own commands, against a running server."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import RunningServer, send, serving

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def at(server: RunningServer, text: str) -> str:
    return text.replace("http://127.0.0.1:8000", server.root)


def test_the_curl_line_gives_the_answer_shown(server: RunningServer) -> None:
    [curl] = [block for block in blocks("sh") if block.startswith("curl")]
    [shown] = [json.loads(block) for block in blocks("json")]

    answer = send(at(server, curl))

    for varying in ("id", "created", "system_fingerprint"):
        assert isinstance(answer.pop(varying), type(shown.pop(varying)))
    assert answer == shown


def test_the_python_example_runs(server: RunningServer) -> None:
    [example] = blocks("python")

    ran = subprocess.run([sys.executable, "-c", at(server, example)], capture_output=True, check=True, text=True)

    assert "42" in ran.stdout


def test_the_two_commands_are_there() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines()]

    assert "pip install uv && uv run ouzel serve" in commands
    assert "uv run pytest" in commands


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("http") or (Path(__file__).parent.parent / link).exists(), link
