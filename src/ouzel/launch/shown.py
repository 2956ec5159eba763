"""Shows the settings of a client as shell commands, without the API key."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ouzel.launch.client import Setup, Target
from ouzel.terminal.harmless import harmless, harmless_line

_HIDDEN_KEY = "…"
_SHORT_CONTEXT = 16_384  # tokens; the prompts of most agents with their tools are shorter


def show_setup(
    target: Target, setup: Setup, paths: Sequence[Path], command: Sequence[str]
) -> Iterator[str]:
    """Yields the lines: comments, and commands that a shell can run."""
    yield f"# {target.model} at {target.root}, context {target.context} tokens"
    if target.context < _SHORT_CONTEXT:
        yield (
            f"# The context is short: the instructions and tools of an agent may take more than "
            f"{target.context} tokens."
        )
    for path in paths:
        yield f"# settings: {path}"
    for name in setup.removed_variables:
        yield f"unset {name}"
    for name, value in setup.variables.items():
        is_key = bool(target.api_key) and value == target.api_key
        comment = "  # the API key" if is_key else ""
        yield f"export {name}={shlex.quote(_HIDDEN_KEY if is_key else value)}{comment}"
    yield shlex.join(command)


def show_files(directory: Path, files: Mapping[str, str]) -> Iterator[str]:
    for name, text in files.items():
        yield f"# {directory / name}"
        yield from harmless(text).splitlines()
        yield ""


def write_lines(lines: Iterator[str]) -> str:
    return "".join(harmless_line(line) + "\n" for line in lines)
