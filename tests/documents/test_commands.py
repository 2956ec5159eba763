"""Every command and every example of the documents is valid, or marked with the reason."""

import ast
import importlib.util
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from ouzel.cli.commands import COMMANDS
from ouzel.options.command_line import read_command_line
from ouzel.options.options import known_flags
from tests.documents.examples import BLOCKS, DOCUMENTS
from tests.documents.markdown import ROOT, Block, read_prose
from tests.documents.shell import Command, read_commands


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


SHELL = [block for block in BLOCKS if block.language == "sh" and not block.reason]
READERS: Mapping[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "toml": tomllib.loads,
    "python": ast.parse,
    "js": str,  # tests/clients/test_document_examples.py runs them
    "sh": read_commands,
    "markdown": str,
    "": str,  # output of a program, trees, drawings
}
RECIPES = set(re.findall(r"^([a-z][a-z-]*)[^:\n]*:", (ROOT / "justfile").read_text(), re.M))
ENVIRONMENTS = {
    "--group",
    "bench",
    "adapters",
    "sentences",
    "videos",
    "gguf",
    "--project",
    "training",
}  # options of `uv run`
# The newest two serve a speech model and a voice model from the hub; test_document.py in
# tests/api/speech and tests/api/speaking runs the other programs of their pages.
MAX_NOT_RUN = 64


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a working directory with the files that the documents' commands name."""
    (tmp_path / "keys.txt").write_text("one-key\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "config.json").write_text('{"model_config_list": []}')
    (tmp_path / "agent.yaml").write_text("mcp_servers: []\n")
    shutil.copy(ROOT / "deploy" / "compose" / "retrieval" / "models.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# tests/test_contributing.py compares the quotations of CONTRIBUTING.md, which are parts of files.
@pytest.mark.parametrize(
    "block",
    [each for each in BLOCKS if each.language != "python" or each.document != "CONTRIBUTING.md"],
    ids=str,
)
def test_a_block_can_be_read(block: Block) -> None:
    READERS[block.language](block.text)


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_the_commands_of_a_block_are_valid(block: Block, directory: Path) -> None:
    commands = read_commands(block.text)

    assert commands
    for command in commands:
        check_command(command)


def check_command(command: Command) -> None:
    """Fails for a command that is neither valid nor sent by test_examples.py."""
    match command.words:
        case ("ouzel", name, *arguments):
            check_ouzel(name, arguments, command.variables)
        case ("uv", "run", *words):
            check_uv_run([word for word in words if word not in ENVIRONMENTS])
        case ("just", recipe, *_):
            assert recipe in RECIPES
        case (
            ("curl", *_)
            | ("uv", "sync", "--locked")
            | ("pip", "install", "uv" | "ouzel")
            | ("git", "diff")
        ):
            pass  # test_examples.py sends the first; CI begins with the others
        case ("export", *assignments):
            assert all("=" in assignment for assignment in assignments)
        case ():
            assert command.variables
        case _:
            pytest.fail(f"mark the block with `<!-- not run: … -->`: {' '.join(command.words)}")


def check_ouzel(name: str, arguments: list[str], variables: Mapping[str, str]) -> None:
    """Reads the arguments as the command does: flags exist, values are valid."""
    command = COMMANDS[name]
    # `ouzel launch` passes the arguments behind "--" to another program.
    rest = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if (parser := command.own_parser()) is not None:
        _, rest = parser.parse_known_args(rest)
    if command.takes_serve_options:
        read_command_line(rest, variables, command=name)
    else:
        assert not rest, rest


def check_uv_run(words: list[str]) -> None:
    match words:
        case ("pytest", *arguments):
            named = [word for word in arguments if word.startswith("tests")]
            assert all((ROOT / name).exists() for name in named), named
        case ("python", "-m", module, *_):
            assert importlib.util.find_spec(module) is not None, module
        case _:
            pytest.fail(f"unknown: uv run {' '.join(words)}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_flags_in_the_text_are_options(document: Path) -> None:
    """Checks flags in tables and sentences, such as `--max-num-seqs` and `ouzel serve --uds`."""
    if relative(document).startswith(PAGES_OF_OTHERS):
        return
    quoted = re.findall(r"`((?:ouzel [a-z]+ )?--[^`\n]*)`", read_prose(document))
    flags = {flag for text in quoted for flag in re.findall(r"(?<!\S)--[a-z][a-z-]+", text)}

    assert flags - ALL_FLAGS - OTHERS == set()


def list_flags() -> set[str]:
    """Returns the flags of all commands of `ouzel`."""
    flags = {*known_flags(), "--help", "--version", "--config"}
    flags |= {f"--no-{flag[2:]}" for flag in flags}
    for command in COMMANDS.values():
        if (parser := command.own_parser()) is not None:
            flags |= {flag for action in parser._actions for flag in action.option_strings}
    return flags


ALL_FLAGS = list_flags()
# Flags of other programs: pytest, uv, docker, vllm bench, vllm serve, benchmarks.quality, Claude
# Code and aider.
OTHERS = {
    "--write",
    "--fast",
    "--release",
    "--build-arg",
    "--save-detailed",
    "--tokenizer",
    "--enable-scale-out",
    "--enable-prompt-tokens-details",
    "--scheduling-policy",
    "--reasoning-config",
    "--no-dev",
    "--group",
    "--configurations",
    "--make-truth",
    "--rows",
    "--settings",
    "--openai-api-base",
    "--model-metadata-file",
}
# These pages are about other programs' flags; tests/options/test_ovms_flags.py reads the last two.
PAGES_OF_OTHERS = (
    "training/",
    "docs/connect/",
    "docs/how-to/clients.md",
    "docs/reference/ovms.md",
    "docs/reference/conformance.md",
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_commands_stand_in_fenced_blocks(document: Path) -> None:
    """An indented block has no language, so no test would find its commands."""
    assert re.findall(r"\n\n( {4}[a-z]+ .*)", read_prose(document)) == []


def test_few_blocks_are_not_run() -> None:
    """The number may only fall: a newly marked block needs a test elsewhere, or a reason here."""
    marked = [block for block in BLOCKS if block.reason]

    assert len(marked) <= MAX_NOT_RUN, [str(block) for block in marked]
