"""The `ouzel` command: it runs one of its commands and reports an error in one line."""

import errno
import logging
import os
import sys
from collections.abc import Sequence

import ouzel
from ouzel.cli.commands import COMMANDS
from ouzel.errors import OuzelError
from ouzel.observability import log_settings
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.suggestion import did_you_mean

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that `argv` names (default: `sys.argv`) and returns the exit status."""
    _open_closed_streams()
    arguments = sys.argv[1:] if argv is None else argv
    command = COMMANDS.get(arguments[0]) if arguments else None
    try:
        if command is None:
            return _run_without_command(arguments)
        status = command.run(arguments[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output has closed the pipe
        _drop_output()
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        _report(OuzelError(f"{error.filename or 'the output'} cannot be written: {error.strerror}"))
        return 1
    except OuzelError as error:
        _report(error)
        return error.exit_status if isinstance(error, InvalidOption) else 1
    return status


def _run_without_command(arguments: Sequence[str]) -> int:
    """Prints the help for an empty command line; reports a first word that is no command."""
    parser = _build_parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    if not arguments[0].startswith("-"):
        hint = did_you_mean(arguments[:1], COMMANDS) or "; ouzel --help lists all commands"
        raise InvalidOption(f"unknown command {arguments[0]}{hint}")
    parser.parse_args(arguments)  # ends the program
    return 2


def _build_parser() -> OneLineParser:
    """Returns the parser of a command line that does not begin with a command."""
    parser = OneLineParser(prog="ouzel", description=ouzel.__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ouzel {ouzel.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.summary)
    return parser


def _report(error: OuzelError) -> None:
    """Writes the error in one line: as a JSON log line if the log has that format, else as text."""
    if log_settings().log_format == "json":
        logger.critical("%s", error)
    else:
        # The message may quote a server or a file, so control characters are removed.
        sys.stderr.write(f"ouzel: {harmless_line(str(error))}\n")


def _open_closed_streams() -> None:
    """Connects closed standard streams to /dev/null.

    Otherwise the next file or socket would get the number of a standard stream.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _drop_output() -> None:
    """Sends the output that is still buffered to /dev/null, so that the exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
