"""The examples of the README and of docs/ run against a server and give what is shown."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.answers import Json
from tests.cli.running import RunningServer, send, serving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = [
    example
    for name in ("tools", "structured-output")
    for example in re.findall(
        r"```sh\n(.*?)```\n\n```json\n(.*?)```",
        (ROOT / "docs" / "how-to" / f"{name}.md").read_text(),
        re.DOTALL,
    )
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def at(server: RunningServer, text: str) -> str:
    return text.replace("http://127.0.0.1:8000", server.root)


def test_the_curl_line_of_the_readme_gives_the_answer_shown(server: RunningServer) -> None:
    curl, _ = (
        block for block in blocks("sh") if block.startswith("curl")
    )  # the other shows a picture
    [shown] = [json.loads(block) for block in blocks("json")]

    answer = send(at(server, curl))

    for varying in ("id", "created", "system_fingerprint"):
        assert isinstance(answer.pop(varying), type(shown.pop(varying)))
    details, shown_details = (
        each["usage"]["completion_tokens_details"] for each in (answer, shown)
    )
    for varying in (
        "accepted_prediction_tokens",
        "rejected_prediction_tokens",
    ):  # whether guesses pay is measured
        assert details.pop(varying) >= shown_details.pop(varying)
    assert answer == shown


def test_the_python_example_of_the_readme_runs(server: RunningServer) -> None:
    [example] = blocks("python")

    ran = subprocess.run(
        [sys.executable, "-c", at(server, example)], capture_output=True, check=True, text=True
    )

    assert "42" in ran.stdout


@pytest.mark.parametrize(("curl", "shown"), EXAMPLES)
def test_an_example_gives_the_message_shown(server: RunningServer, curl: str, shown: str) -> None:
    answer = send(at(server, curl))

    assert "choices" in answer, answer
    assert without_ids(answer["choices"][0]["message"]) == without_ids(json.loads(shown))


def without_ids(message: Json) -> Json:
    calls = [
        {name: value for name, value in call.items() if name != "id"}
        for call in message.get("tool_calls", [])
    ]
    return {**message, "tool_calls": calls}
