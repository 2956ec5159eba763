"""The command line of `ouzel chat`: its own flags, and those of `ouzel serve` where it loads the model itself."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.one_line_parser import OneLineParser

_USAGE = "ouzel chat [MODEL | --url URL] [OPTIONS]"
_DESCRIPTION = """\
Talks with a model. In a terminal it is a conversation, in which /help lists the commands; with -p, or with text on
standard input, one answer is printed. MODEL is what ouzel serve takes; this program loads it, without a server."""
_EPILOG = """\
Without --url, the options of ouzel serve about the model, the engine, pictures and logs count too, with their
environment variables and --config: ouzel serve --help lists them."""


@dataclass(frozen=True, slots=True)
class ChatFlags:
    """Holds what is given, before any of it is looked at; empty for what is not."""

    prompt: str | None
    json: bool
    schema: str
    system: str
    image: tuple[str, ...]
    tools: str
    set: tuple[str, ...]
    url: str
    api_key: str
    model_name: str


def read_flags(arguments: Sequence[str]) -> tuple[ChatFlags, list[str]]:
    """Returns the other arguments, too: MODEL and the options of serve.

    Raises InvalidOption, and SystemExit where a text has been written.
    """
    broken = [argument for argument in arguments if not _is_text(argument)]
    if broken:
        raise InvalidOption(f"the arguments must be UTF-8, given {broken[0]!r}")
    parser = chat_parser()
    namespace, rest = parser.parse_known_args(arguments)
    namespace.image, namespace.set = tuple(namespace.image), tuple(namespace.set)
    flags = ChatFlags(**vars(namespace))
    if flags.url and rest:
        raise InvalidOption(
            f"{rest[0]}: needs no --url: the server has its model and its options (--model NAME)"
        )
    if not flags.url and flags.api_key:
        raise InvalidOption("--api-key: needs --url, given without it")
    if not flags.url and flags.model_name:
        raise InvalidOption(
            f"--model: needs --url, given {flags.model_name!r} without it; MODEL stands alone"
        )
    return flags, rest


def _is_text(argument: str) -> bool:
    """Bytes that were no UTF-8 became halves of characters."""
    return not any("\ud800" <= char <= "\udfff" for char in argument)


def api_key(flags: ChatFlags) -> str:
    return flags.api_key or os.environ.get("OPENAI_API_KEY", "")


def own_flags() -> list[str]:
    """Returns them for suggestions."""
    return [
        option
        for action in chat_parser()._actions
        for option in action.option_strings
        if option.startswith("--")
    ]


def chat_parser() -> OneLineParser:
    parser = OneLineParser(
        prog="ouzel chat",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-p",
        "--prompt",
        metavar="TEXT",
        help="print one answer to this, and to standard input's text",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the answer as one object, with its usage (with -p)",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        default="",
        help="answers are JSON of the JSON schema in the file",
    )
    parser.add_argument(
        "--system", metavar="TEXT", default="", help="the text before the conversation"
    )
    parser.add_argument(
        "--image", metavar="PATH", default=[], action="append", help="a picture; repeatable"
    )
    parser.add_argument(
        "--tools", metavar="FILE.py", default="", help="functions that the model may call"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        default=[],
        action="append",
        help="as temperature=0.2; repeatable",
    )
    parser.add_argument("--url", default="", help="ask this server, as http://localhost:8000")
    parser.add_argument(
        "--api-key", metavar="KEY", default="", help="of that server; or OPENAI_API_KEY"
    )
    parser.add_argument(
        "--model", dest="model_name", metavar="NAME", default="", help="of those that it serves"
    )
    return parser
