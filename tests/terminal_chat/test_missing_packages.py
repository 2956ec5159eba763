"""One answer needs no package for terminals; a conversation names the package that is missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import RunningServer, running_server
from tests.terminal_chat.running import piped
from tests.terminal_chat.terminal_program import chatting

PACKAGES = ("rich", "prompt_toolkit", "markdown_it", "pygments", "wcwidth", "mdurl")


@pytest.fixture(scope="module")
def parrot() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def blocked(tmp_path: Path) -> str:
    """Returns a directory for PYTHONPATH in which each of the packages fails as if missing."""
    for name in PACKAGES:
        missing = f"raise ModuleNotFoundError('No module named {name}', name='{name}')\n"
        (tmp_path / f"{name}.py").write_text(missing)
    return str(tmp_path)


def test_p_answers_without_packages_for_terminals(parrot: RunningServer, blocked: str) -> None:
    ended = piped("--url", parrot.url, "-p", "**Hello!**", environment={"PYTHONPATH": blocked})

    assert (ended.status, ended.output, ended.errors) == (0, "**Hello!**\n", "")


def test_a_pipe_gets_json_without_packages_for_terminals(
    parrot: RunningServer, blocked: str
) -> None:
    ended = piped("--url", parrot.url, "--json", text="Hello!", environment={"PYTHONPATH": blocked})

    assert (ended.status, '"content":"Hello!"' in ended.output) == (0, True)


def test_p_in_a_terminal_prints_the_answer_as_the_model_wrote_it(
    parrot: RunningServer, blocked: str, tmp_path: Path
) -> None:
    arguments = ("--url", parrot.url, "-p", "**Hello!**")
    with chatting(*arguments, state=tmp_path, PYTHONPATH=blocked) as program:
        status = program.wait_for_end()

    assert (status, program.seen().strip()) == (0, "**Hello!**")


def test_a_conversation_names_the_missing_package(
    parrot: RunningServer, blocked: str, tmp_path: Path
) -> None:
    with chatting("--url", parrot.url, state=tmp_path, PYTHONPATH=blocked) as program:
        status = program.wait_for_end()

    assert status == 1
    assert "ouzel: a conversation needs the package rich" in program.seen()
