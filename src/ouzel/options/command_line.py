"""Reads the command line of `ouzel serve`; other commands that load a model share it."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from ouzel.options.help import full_help, short_help
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options, add_options, known_flags, read_options
from ouzel.options.profiles.ovms_directives import read_directive
from ouzel.options.profiles.ovms_flags import split_ovms_flags
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.suggestion import did_you_mean


class _Help(argparse.Action):
    """Prints the help and ends the process; -h prints the common options, --help prints all."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        sys.stdout.write(full_help() if option_string == "--help" else short_help())
        parser.exit()


def read_command_line(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    command: str = "serve",
    other_flags: Sequence[str] = (),
) -> Options:
    """Reads MODEL and the options of `ouzel serve`.

    `other_flags` are the command's own flags. They are no longer in `arguments`, but the error for
    an unknown flag may suggest them. Raises InvalidOption, and SystemExit after the help or an
    error has been printed.
    """
    environment = os.environ if environment is None else environment
    ovms_flags = split_ovms_flags(arguments, environment)
    parser = OneLineParser(prog=f"ouzel {command}", allow_abbrev=False, add_help=False)
    parser.add_argument("-h", "--help", nargs=0, action=_Help)
    parser.add_argument("model", nargs="?", default=argparse.SUPPRESS)
    add_options(parser)
    namespace, unknown = parser.parse_known_args(ovms_flags.rest)
    values = ovms_flags.values | vars(namespace)
    if unknown:
        flags = [*known_flags(), *other_flags]
        parser.error(_unknown_message(unknown, str(values.get("model", "")), command, flags))
    options = read_options(values, environment, ovms_flags.files)
    if ovms_flags.names and options.server.profile != "ovms":
        raise InvalidOption(
            f"--{ovms_flags.names[0]} is a flag of OpenVINO Model Server: it needs --profile ovms; "
            "flags of Ouzel are spelt with hyphens, see ouzel serve --help"
        )
    directive = None if ovms_flags.wish is None else read_directive(ovms_flags.wish)
    if directive is not None and not directive.is_all and "model" in namespace:
        directive = None  # MODEL, and not the model of the directive, is to be served
    if directive is not None and directive.is_all and command != "serve":
        raise InvalidOption(f"{directive.flag}: is for ouzel serve only, given to ouzel {command}")
    return replace(options, remarks=(*options.remarks, *ovms_flags.remarks), directive=directive)


def _unknown_message(
    arguments: Sequence[str], model: str, command: str, known: Sequence[str]
) -> str:
    """Returns the error for unknown arguments: it names the first flag, else the first argument."""
    for argument in arguments:
        if argument.startswith("-"):
            flag = argument.partition("=")[0]
            hint = did_you_mean([flag], known) or f"; ouzel {command} --help lists all options"
            return f"unknown option {flag}{hint}"
    return f"unexpected argument {arguments[0]!r}; the model is {model!r}"
