"""The `ouzel` command reads the options and serves."""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import uvloop

import ouzel
from ouzel.cli.descriptors import with_max_connections
from ouzel.cli.help import full_help, short_help
from ouzel.cli.inspect import inspected
from ouzel.cli.invalid_option import InvalidOption
from ouzel.cli.listener import bound, bound_for_metrics
from ouzel.cli.model_directory import located
from ouzel.cli.model_options import check_with_model, check_without_model
from ouzel.cli.one_line_parser import OneLineParser
from ouzel.cli.options import Options, add_options, known_flags, read_options
from ouzel.cli.ovms_flags import split_ovms_flags
from ouzel.cli.serve import serve
from ouzel.cli.suggestion import did_you_mean
from ouzel.cli.traces import open_traces
from ouzel.errors import OuzelError
from ouzel.observability import LogFormat, configure_logging

logger = logging.getLogger(__name__)


_COMMANDS = {
    "serve": "Serve a model over the OpenAI API; `ouzel serve -h` lists the common options, --help all.",
    "inspect": "Print what would be loaded of a model, and what it would take; with the options of serve.",
}


class _Help(argparse.Action):
    """Writes a text and ends the process; -h and --help differ."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        sys.stdout.write(full_help() if option_string == "--help" else short_help())
        parser.exit()


def build_parser() -> OneLineParser:
    parser = OneLineParser(prog="ouzel", description=ouzel.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ouzel {ouzel.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text, allow_abbrev=False, add_help=False)
        command.add_argument("-h", "--help", nargs=0, action=_Help)
        command.add_argument("model", nargs="?", default=argparse.SUPPRESS)
        add_options(command)
    return parser


def read_command_line(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Options:
    """Raises InvalidOption, and SystemExit where a text has been written: help, or what is wrong with a flag."""
    ovms_flags = split_ovms_flags(argv)
    parser = build_parser()
    namespace, unknown = parser.parse_known_args(ovms_flags.rest)
    arguments = ovms_flags.values | vars(namespace)
    command = str(arguments.pop("command"))
    if unknown:
        parser.error(_unknown_message(unknown, str(arguments.get("model", ""))))
    options = read_options(arguments, environment)
    ovms_flags.check_profile(options.server.profile)
    return replace(options, command=command, remarks=(*options.remarks, *ovms_flags.remarks))


def _unknown_message(arguments: Sequence[str], model: str) -> str:
    """The first flag among the arguments is named: what follows may be its value."""
    for argument in arguments:
        if argument.startswith("-"):
            flag = argument.partition("=")[0]
            return f"unknown option {flag}{did_you_mean([flag], known_flags()) or '; ouzel serve --help lists all'}"
    return f"unexpected argument {arguments[0]!r}; the model is {model!r}"


def main(argv: Sequence[str] | None = None) -> int:
    options: Options | None = None
    try:
        options = read_command_line(sys.argv[1:] if argv is None else argv)
        observability = options.observability
        configure_logging(observability.log_level, observability.log_format)
        for remark in options.remarks:
            logger.info(remark)
        has_metrics_port = observability.metrics_port is not None
        options = replace(options, limits=with_max_connections(options.limits, has_metrics_port=has_metrics_port))
        check_without_model(options.model)
        if options.command == "inspect":
            sys.stdout.write(inspected(options, located(options.model)))
            return 0
        traces = open_traces(observability.otlp_traces_endpoint)
        with bound(options.server) as listener, bound_for_metrics(observability, options.server.host) as watching:
            local = located(options.model)  # may download for minutes: not in the event loop
            check_with_model(options.model, options.engine, local.directory)
            uvloop.run(serve(options, local, listener, watching, traces))
    except KeyboardInterrupt:
        return 130
    except OuzelError as error:
        _say(error, "text" if options is None else options.observability.log_format)
        return error.exit_status if isinstance(error, InvalidOption) else 1
    return 0


def _say(error: OuzelError, log_format: LogFormat) -> None:
    """Says why it ends, in one line of the log's form; before that form is known it is a sentence."""
    if log_format == "json":
        logger.critical("%s", error)
    else:
        sys.stderr.write(f"ouzel: {error}\n")
