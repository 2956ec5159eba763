"""Files of the user stay as they are; a changed file is replaced with the user's consent only."""

import stat
from pathlib import Path

import pytest

from ouzel.launch.client import LaunchError
from ouzel.launch.settings_files import write_files
from ouzel.launch.table import CLIENTS
from tests.launch.launching import Machine, ModelServer

OWN_FILES = (
    ".aider.conf.yml",
    ".claude.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".config/opencode/opencode.json",
    ".continue/config.yaml",
    ".qwen/settings.json",
)


def refuse(changed: list[Path]) -> bool:
    raise AssertionError(f"nobody was to be asked about {changed}")


def test_the_users_own_settings_are_neither_changed_nor_joined(
    machine: Machine, server: ModelServer
) -> None:
    for name in OWN_FILES:
        (machine.home / name).parent.mkdir(parents=True, exist_ok=True)
        (machine.home / name).write_text(f"settings of the user in {name}")
    before = sorted(machine.home.rglob("*"))

    for client in CLIENTS:
        assert machine.launch(client, "--url", server.url, "--print").status == 0

    assert sorted(machine.home.rglob("*")) == before
    for name in OWN_FILES:
        assert (machine.home / name).read_text() == f"settings of the user in {name}"


def test_a_second_launch_replaces_files_of_the_first(tmp_path: Path) -> None:
    write_files(tmp_path / "d", {"a": "one", "b": "same"}, refuse)
    paths = write_files(tmp_path / "d", {"a": "two", "b": "same"}, refuse)

    assert [path.read_text() for path in paths] == ["two", "same"]
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(paths[0].parent.stat().st_mode) == 0o700
    assert not list((tmp_path / "d").glob("*.new"))


@pytest.mark.parametrize("may_replace", [False, True])
def test_a_changed_file_is_replaced_with_consent_only(tmp_path: Path, may_replace: bool) -> None:
    asked: list[list[Path]] = []

    def answer(changed: list[Path]) -> bool:
        asked.append(changed)
        return may_replace

    write_files(tmp_path, {"a": "one", "b": "one"}, refuse)
    (tmp_path / "b").write_text("by the user")
    files = {"a": "two", "b": "two"}
    if may_replace:
        write_files(tmp_path, files, answer)
        write_files(tmp_path, {"a": "three", "b": "three"}, refuse)
    else:
        with pytest.raises(LaunchError, match="kept"):
            write_files(tmp_path, files, answer)

    assert asked == [[tmp_path / "b"]]
    expected = ("three", "three") if may_replace else ("one", "by the user")
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == expected


def test_a_file_that_was_there_before_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("by the user")

    with pytest.raises(LaunchError):
        write_files(tmp_path, {"a": "one"}, lambda changed: False)

    assert (tmp_path / "a").read_text() == "by the user"


def test_the_file_behind_a_link_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("by the user")
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "a").symlink_to(tmp_path / "own")

    write_files(directory, {"a": "one"}, lambda changed: True)

    assert (tmp_path / "own").read_text() == "by the user"
    assert (directory / "a").read_text() == "one"


def test_without_a_terminal_a_changed_file_needs_the_option(
    machine: Machine, server: ModelServer
) -> None:
    arguments = ("opencode", "--url", server.url, "--print")
    assert machine.launch(*arguments).status == 0
    path = machine.settings("opencode") / "opencode.json"
    path.write_text("{}")

    refused = machine.launch(*arguments)
    assert refused.status == 2
    assert "--overwrite: is required without a terminal" in refused.errors
    assert path.read_text() == "{}"

    assert machine.launch(*arguments, "--overwrite").status == 0
    assert path.read_text() != "{}"


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LaunchError, match=r"file.*cannot be written"):
        write_files(tmp_path / "file" / "d", {"a": "one"}, refuse)
