"""Options of the sandbox are checked at the start of a server."""

import sys
from pathlib import Path

import pytest

from ouzel.config import HostedToolsConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.open_containers import list_python_directories, open_containers
from tests.hosted_tools.code_interpreter.sandboxes import skip_without_sandbox


async def test_the_sandbox_is_off_unless_the_operator_asks_for_it() -> None:
    assert await open_containers(HostedToolsConfig()) is None


async def test_a_server_without_bubblewrap_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidOption, match="there is no program bwrap: install"):
        await open_containers(HostedToolsConfig(sandbox="bubblewrap"))


@pytest.mark.parametrize(
    ("root", "python", "message"),
    [
        ("/nowhere", "", "sandbox_root must be a directory, given /nowhere"),
        ("", "python3", "sandbox_python must be the path of a program"),
        ("", "/nowhere/bin/python", "given /nowhere/bin/python"),
    ],
)
async def test_wrong_paths_are_refused(root: str, python: str, message: str) -> None:
    config = HostedToolsConfig(sandbox="bubblewrap", sandbox_root=root, sandbox_python=python)
    with pytest.raises(InvalidOption, match=message):
        await open_containers(config)


def test_a_call_in_a_container_ends_before_the_call_of_the_tool() -> None:
    with pytest.raises(ValueError, match="sandbox_timeout_s must be < tool_call_timeout_s"):
        HostedToolsConfig(sandbox="bubblewrap", sandbox_timeout_s=60.0)


async def test_a_root_without_python_is_refused(tmp_path: Path) -> None:
    skip_without_sandbox()
    (tmp_path / "usr").mkdir()
    config = HostedToolsConfig(sandbox="bubblewrap", sandbox_root=str(tmp_path))
    with pytest.raises(InvalidOption, match="no sandbox can be made: "):
        await open_containers(config)


def test_an_environment_of_python_is_shown_and_nothing_around_it(tmp_path: Path) -> None:
    """The directories of an interpreter are shown, never a home or the root."""
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    (environment / "bin" / "python").symlink_to(sys.executable)
    shown = list_python_directories(str(environment / "bin" / "python"))
    assert environment in shown and tmp_path not in shown
    for place in shown:
        assert place != Path("/") and place not in Path.home().parents and place != Path.home()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/sh")
    assert list_python_directories(str(tmp_path / "bin" / "python")) == ()


def test_nothing_is_shown_without_a_python_of_the_operator() -> None:
    assert list_python_directories("") == ()
