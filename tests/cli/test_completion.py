"""Shells complete the command lines of `ouzel`: each installed shell runs its printed script."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ouzel.cli.app import main
from ouzel.cli.commands import COMMANDS
from ouzel.options.options import known_flags
from tests.terminal import at_terminal

BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_ouzel
(( ${#COMPREPLY[@]} )) && printf '%s\\n' "${COMPREPLY[@]}"; true
"""
ZSH = (
    "autoload -Uz compinit; compinit -u -D -d {dump}; source {script}; "
    "PS1='> '; zstyle ':completion:*' list-prompt ''"
)


@pytest.fixture
def script(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Path:
    """Prints the script for the test's shell; skips the test if the shell is missing."""
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"ouzel.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.fixture
def hub_cache(tmp_path: Path) -> dict[str, str]:
    """Makes an environment with one model in the hub's cache."""
    (tmp_path / "hub" / "models--Owner--Small-1B").mkdir(parents=True)
    (tmp_path / "hub" / "datasets--owner--data").mkdir()
    return os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub")}


def complete_in_bash(
    script: Path, *words: str, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> list[str]:
    command = ["bash", "--norc", "-c", BASH, "bash", str(script), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=cwd
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def complete_in_fish(
    script: Path, line: str, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> list[str]:
    program = f"source {script}; complete -C '{line}'"
    command = ["fish", "--no-config", "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=cwd
    )
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def complete_in_zsh(script: Path, line: str, environment: dict[str, str] | None = None) -> str:
    """Returns the line as the shell completes it, if there is one completion."""
    with at_terminal(["zsh", "-f", "-i"], environment or os.environ) as terminal:
        terminal.type(ZSH.format(dump=script.with_suffix(".dump"), script=script) + "\n")
        terminal.read_until(lambda lines: lines[-1:] == [">"])
        terminal.type(line + "\t")
        terminal.read_until(
            lambda lines: (
                lines[-1].startswith("> " + line[:-1]) and len(lines[-1]) > len("> " + line)
            )
        )
        return terminal.lines[-1].removeprefix("> ")


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_commands_flags_and_choices(script: Path) -> None:
    assert complete_in_bash(script, "ouzel", "") == [*COMMANDS, "--help", "--version"]
    assert complete_in_bash(script, "ouzel", "comp") == ["completion"]
    assert complete_in_bash(script, "ouzel", "serve", "--demo", "") == ["text", "vision"]
    assert complete_in_bash(script, "ouzel", "serve", "--demo", "=", "v") == ["vision"]
    assert complete_in_bash(script, "ouzel", "serve", "--demo", "=") == ["text", "vision"]
    assert complete_in_bash(script, "ouzel", "completion", "") == ["bash", "zsh", "fish"]
    assert complete_in_bash(script, "ouzel", "serve", "--port", "") == []
    assert complete_in_bash(script, "ouzel", "rm", "--w") == ["--weights-only"]
    assert "int4" in complete_in_bash(script, "ouzel", "pull", "owner/model", "--weights", "")
    assert "qwen3_coder" in complete_in_bash(script, "ouzel", "serve", "--tool-parser", "")


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_knows_all_flags_of_serve(script: Path) -> None:
    assert sorted(complete_in_bash(script, "ouzel", "serve", "--")) == sorted(known_flags())


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_models_and_files(
    script: Path, hub_cache: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "config.yaml").touch()
    assert complete_in_bash(
        script, "ouzel", "serve", "Ow", environment=hub_cache, cwd=tmp_path
    ) == ["Owner/Small-1B"]
    assert complete_in_bash(script, "ouzel", "rm", "O", environment=hub_cache, cwd=tmp_path) == [
        "Owner/Small-1B"
    ]
    assert complete_in_bash(script, "ouzel", "serve", "--config", "con", cwd=tmp_path) == [
        "config.yaml"
    ]
    assert sorted(complete_in_bash(script, "ouzel", "serve", "--cache-dir", "", cwd=tmp_path)) == [
        "directory",
        "hub",
    ]


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_takes_names_as_they_are(
    script: Path, hub_cache: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "hub" / "models--$(touch ran)--x").mkdir()
    (tmp_path / "a model.gguf").touch()
    (tmp_path / "a*").touch()
    found = complete_in_bash(script, "ouzel", "serve", "a", environment=hub_cache, cwd=tmp_path)
    assert sorted(found) == ["a model.gguf", "a*"]
    assert complete_in_bash(script, "ouzel", "serve", "$", environment=hub_cache, cwd=tmp_path) == [
        "$(touch ran)/x"
    ]
    assert not (tmp_path / "ran").exists()
    assert complete_in_bash(
        script, "ouzel", "serve", "~/a", environment=hub_cache | {"HOME": str(tmp_path)}
    ) == [
        "~/a*",
        "~/a model.gguf",
    ]


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_reads_the_script_as_the_help_tells(script: Path, tmp_path: Path) -> None:
    program = f'eval "$(cat {script})"; complete -p ouzel'
    done = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "complete -o filenames -F _ouzel ouzel\n"


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes_commands_flags_choices_and_models(
    script: Path, hub_cache: dict[str, str], tmp_path: Path
) -> None:
    assert set(complete_in_fish(script, "ouzel ")) == {*COMMANDS}
    assert complete_in_fish(script, "ouzel serve --demo ") == ["text", "vision"]
    assert complete_in_fish(script, "ouzel completion ") == ["bash", "fish", "zsh"]
    assert {*known_flags()} - {"--help"} <= {*complete_in_fish(script, "ouzel serve --")}
    assert "Owner/Small-1B" in complete_in_fish(script, "ouzel serve Own", hub_cache, tmp_path)
    assert complete_in_fish(script, "ouzel rm --weights-") == ["--weights-only"]


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("ouzel compl", "ouzel completion"),
        ("ouzel serve --demo v", "ouzel serve --demo vision"),
        ("ouzel serve --demo=v", "ouzel serve --demo=vision"),
        ("ouzel completion f", "ouzel completion fish"),
        ("ouzel rm --weights-o", "ouzel rm --weights-only"),
        ("ouzel serve --max-num-b", "ouzel serve --max-num-batched-tokens"),
        ("ouzel rm Own", "ouzel rm Owner/Small-1B"),
    ],
)
def test_zsh_completes(script: Path, line: str, completed: str, hub_cache: dict[str, str]) -> None:
    assert complete_in_zsh(script, line, hub_cache).rstrip(" =") == completed


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "csh"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("ouzel: shell: invalid choice: 'csh'")
