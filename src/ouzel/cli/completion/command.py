"""`ouzel completion SHELL` prints a script, which the shell reads at its start."""

import sys
from collections.abc import Callable, Mapping, Sequence

import ouzel
from ouzel.cli.completion.bash import bash_script
from ouzel.cli.completion.fish import fish_script
from ouzel.cli.completion.flags import Completed, completed
from ouzel.cli.completion.zsh import zsh_script
from ouzel.terminal.one_line_parser import OneLineParser

_SCRIPTS: Mapping[str, Callable[[Sequence[Completed], str], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
_DESCRIPTION = """\
Prints the script by which a shell completes commands, options, their values and models. To turn it on: for bash,
`eval "$(ouzel completion bash)"` in ~/.bashrc; for zsh, the same with zsh in ~/.zshrc, behind compinit; for fish,
`ouzel completion fish > ~/.config/fish/completions/ouzel.fish`."""


def completion_parser() -> OneLineParser:
    parser = OneLineParser(prog="ouzel completion", description=_DESCRIPTION, allow_abbrev=False)
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that the script is for")
    return parser


def run(arguments: Sequence[str]) -> int:
    shell = completion_parser().parse_args(arguments).shell
    sys.stdout.write(_SCRIPTS[shell](completed(), ouzel.__version__))
    return 0
