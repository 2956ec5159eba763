"""The `ouzel` command: it runs one of its commands, and says in one line why that cannot be done."""

import errno
import logging
import sys
from collections.abc import Sequence

import ouzel
from ouzel.cli.commands import COMMANDS
from ouzel.errors import OuzelError
from ouzel.observability import log_settings
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.standard_streams import drop_output, open_closed_streams
from ouzel.terminal.suggestion import did_you_mean

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    open_closed_streams()
    arguments = sys.argv[1:] if argv is None else argv
    command = COMMANDS.get(arguments[0]) if arguments else None
    try:
        if command is None:
            return _without_command(arguments)
        status = command.run(arguments[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever reads has read enough
        drop_output()
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        drop_output()
        _say(OuzelError(f"{error.filename or 'the output'} cannot be written: {error.strerror}"))
        return 1
    except OuzelError as error:
        _say(error)
        return error.exit_status if isinstance(error, InvalidOption) else 1
    return status


def _without_command(arguments: Sequence[str]) -> int:
    """Shows the help if there is nothing at all on the command line; else the parser says what is wrong with it."""
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    if not arguments[0].startswith("-"):
        near = did_you_mean(arguments[:1], COMMANDS) or "; ouzel --help lists all"
        raise InvalidOption(f"unknown command {arguments[0]}{near}")
    parser.parse_args(arguments)  # ends the program
    return 2


def _parser() -> OneLineParser:
    """Returns what reads a command line that begins with no command."""
    parser = OneLineParser(prog="ouzel", description=ouzel.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ouzel {ouzel.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.summary)
    return parser


def _say(error: OuzelError) -> None:
    """Says why it ends, in one line of the log's form; before that form is known it is a sentence."""
    if log_settings().log_format == "json":
        logger.critical("%s", error)
    else:
        sys.stderr.write(
            f"ouzel: {harmless_line(str(error))}\n"
        )  # a server or a file may have said it
