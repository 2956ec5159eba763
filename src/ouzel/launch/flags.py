"""Reads the options of `ouzel launch`; the arguments behind `--` belong to the client."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ouzel.launch.client import KEY_VARIABLE
from ouzel.launch.table import CLIENTS
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.one_line_parser import OneLineParser

_DEFAULT_URL = "http://127.0.0.1:8000"
_USAGE = "ouzel launch CLIENT [OPTIONS] [-- ARGUMENTS OF THE CLIENT]"
_DESCRIPTION = """\
Starts a coding agent with settings for a running server. The settings are files in
$XDG_DATA_HOME/ouzel/launch/CLIENT (default: ~/.local/share/ouzel/launch/CLIENT), flags and
environment variables of the client; your own settings files stay as they are."""


@dataclass(frozen=True, slots=True)
class LaunchFlags:
    client: str
    url: str
    model: str
    api_key: str
    serve: str
    prints: bool
    is_dry_run: bool
    overwrites: bool
    client_arguments: tuple[str, ...]

    @property
    def starts(self) -> bool:
        return not (self.prints or self.is_dry_run)


def read_flags(arguments: Sequence[str]) -> LaunchFlags:
    """Raises InvalidOption, and SystemExit after --help."""
    own, client_arguments = _split(arguments)
    values = vars(launch_parser().parse_args(own))
    if values["url"].startswith("unix:"):
        raise InvalidOption(
            f"--url: must be an http or https URL, because clients use no Unix sockets, "
            f"given {values['url']!r}"
        )
    if "@" in urlsplit(values["url"] if "://" in values["url"] else f"//{values['url']}").netloc:
        raise InvalidOption(
            "--url: must have no user name and password, which would get into the client's files; "
            "give a key with --api-key"
        )
    if values["serve"] and (values["prints"] or values["is_dry_run"]):
        raise InvalidOption("--serve: cannot be used with --print or --dry-run")
    values["api_key"] = values["api_key"] or os.environ.get(KEY_VARIABLE, "")
    return LaunchFlags(**values, client_arguments=tuple(client_arguments))


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if "--" not in arguments:
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def launch_parser() -> OneLineParser:
    parser = OneLineParser(
        prog="ouzel launch",
        usage=_USAGE,
        description=_DESCRIPTION,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help=", ".join(CLIENTS))
    parser.add_argument(
        "--url", default=_DEFAULT_URL, help=f"the address of the server (default: {_DEFAULT_URL})"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        default="",
        help="a model of the server (default: its first chat model)",
    )
    parser.add_argument(
        "--api-key", metavar="KEY", default="", help=f"the server's API key; or {KEY_VARIABLE}"
    )
    parser.add_argument(
        "--serve",
        metavar="MODEL",
        default="",
        help="start ouzel serve MODEL at the address, and stop it when the client ends",
    )
    parser.add_argument(
        "--print",
        dest="prints",
        action="store_true",
        help="write the settings, and print the shell commands that use them; start no client",
    )
    parser.add_argument(
        "--dry-run",
        dest="is_dry_run",
        action="store_true",
        help="write nothing and start no client; print the files and the shell commands",
    )
    parser.add_argument(
        "--overwrite",
        dest="overwrites",
        action="store_true",
        help="replace settings files that were changed after ouzel launch wrote them, "
        "without a question",
    )
    return parser
