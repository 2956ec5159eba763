"""Reads the options of `ouzel batch`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.one_line_parser import OneLineParser

_USAGE = """ouzel batch FILE [MODEL] [options]
       ouzel batch FILE --url URL [options]"""
_DESCRIPTION = """\
Runs a file of requests as a batch and writes the results beside it. Each line of FILE is a request
as OpenAI's batches have it: {"custom_id": ..., "method": "POST", "url": "/v1/chat/completions",
"body": {...}}. With --url a server runs the batch, in the time that other requests leave; else this
program loads MODEL and runs it. After Ctrl-C the same command goes on."""
_EPILOG = """\
Without --url, the options of ouzel serve for the model and the engine are accepted too: ouzel serve
--help lists them."""


@dataclass(frozen=True, slots=True)
class BatchFlags:
    """The given values of the options; empty for options that are not given."""

    file: str
    url: str
    api_key: str
    ca_file: str
    output: str
    window: str
    cancel: bool


def batch_parser() -> OneLineParser:
    parser = OneLineParser(
        prog="ouzel batch",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the requests, one JSON object a line")
    parser.add_argument("--url", default="", help="use this server, such as http://localhost:8000")
    parser.add_argument(
        "--api-key", metavar="KEY", default="", help="the server's API key; or OPENAI_API_KEY"
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", default="", help="PEM certificates that the client trusts"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="",
        help="file of the results (default: FILE with .results before its ending); errors go "
        "beside it, with .errors",
    )
    parser.add_argument(
        "--window", metavar="HOURS", default="24h", help="the batch expires after this (24h)"
    )
    parser.add_argument(
        "--cancel", action="store_true", help="cancel the batch that an earlier call has begun"
    )
    return parser


def batch_flags() -> list[str]:
    """Returns the names of the long options, for suggestions."""
    options = (option for action in batch_parser()._actions for option in action.option_strings)
    return [option for option in options if option.startswith("--")]


def read_batch_flags(arguments: Sequence[str]) -> tuple[BatchFlags, list[str]]:
    """Returns the options of batch, and the other arguments: MODEL and the options of serve.

    Raises InvalidOption, and SystemExit after --help.
    """
    namespace, rest = batch_parser().parse_known_args(arguments)
    flags = BatchFlags(**vars(namespace))
    if flags.url and rest:
        raise InvalidOption(f"{rest[0]}: cannot be used with --url")
    if not flags.url:
        for name, value in (("--api-key", flags.api_key), ("--ca-file", flags.ca_file)):
            if value:
                raise InvalidOption(f"{name}: needs --url, given without it")
        if flags.cancel:
            raise InvalidOption("--cancel: needs --url, given without it")
    return flags, rest
