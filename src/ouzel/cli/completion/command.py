"""`ouzel completion SHELL` prints a script that the shell reads at its start."""

import sys
from collections.abc import Callable, Mapping, Sequence

import ouzel
from ouzel.cli.completion.bash import bash_script
from ouzel.cli.completion.fish import fish_script
from ouzel.cli.completion.flags import Completed, read_commands
from ouzel.cli.completion.zsh import zsh_script
from ouzel.terminal.one_line_parser import OneLineParser

_SCRIPTS: Mapping[str, Callable[[Sequence[Completed], str], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
_DESCRIPTION = """\
Prints the script with which a shell completes commands, options, their values and models. To turn
it on: for bash, add `eval "$(ouzel completion bash)"` to ~/.bashrc; for zsh, the same with zsh to
~/.zshrc, behind compinit; for fish, run
`ouzel completion fish > ~/.config/fish/completions/ouzel.fish`."""


def completion_parser() -> OneLineParser:
    parser = OneLineParser(prog="ouzel completion", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell of the script")
    return parser


def run(arguments: Sequence[str]) -> int:
    shell = completion_parser().parse_args(arguments).shell
    sys.stdout.write(_SCRIPTS[shell](read_commands(), ouzel.__version__))
    return 0
