"""Reads the options of `ouzel chat`; without --url, options of `ouzel serve` are accepted too."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal_chat.mcp_servers import McpServers, read_mcp_servers

_USAGE = "ouzel chat [MODEL | --url URL] [OPTIONS]"
_DESCRIPTION = """\
Talks with a model. In a terminal it starts a conversation, in which /help lists the commands. With
-p, or with text on standard input, it prints one answer. MODEL is a model as for ouzel serve; this
program loads it itself, without a server."""
_EPILOG = """\
Without --url, the options of ouzel serve for the model, the engine, images and logs are accepted
too, with their environment variables and --config: ouzel serve --help lists them."""


@dataclass(frozen=True, slots=True)
class ChatFlags:
    """The given values of the options, unchecked; empty for options that are not given."""

    prompt: str | None
    json: bool
    schema: str
    system: str
    image: tuple[str, ...]
    tools: str
    mcp: tuple[str, ...]
    mcp_header: tuple[str, ...]
    mcp_approval: Literal["always", "never"]
    set: tuple[str, ...]
    url: str
    api_key: str
    model_name: str
    command: str = "chat"  # the command of `ouzel` that was called


def read_flags(arguments: Sequence[str]) -> tuple[ChatFlags, list[str]]:
    """Returns the options of chat, and the other arguments: MODEL and the options of serve.

    Raises InvalidOption, and SystemExit after --help.
    """
    flags, rest = split_flags(chat_parser(), arguments)
    if flags.url and rest:
        raise InvalidOption(
            f"{rest[0]}: cannot be used with --url; --model NAME selects a model of the server"
        )
    if not flags.url and flags.api_key:
        raise InvalidOption("--api-key: needs --url, given without it")
    if not flags.url and flags.model_name:
        raise InvalidOption(
            f"--model: needs --url, given {flags.model_name!r} without it; write MODEL without an "
            "option"
        )
    return flags, rest


def split_flags(
    parser: OneLineParser, arguments: Sequence[str], command: str = "chat"
) -> tuple[ChatFlags, list[str]]:
    """Returns the options of the parser, and the other arguments. Raises like `read_flags`."""
    broken = [argument for argument in arguments if not _is_text(argument)]
    if broken:
        raise InvalidOption(f"the arguments must be UTF-8, given {broken[0]!r}")
    namespace, rest = parser.parse_known_args(arguments)
    namespace.image = tuple(namespace.image)
    namespace.mcp = tuple(namespace.mcp)
    namespace.mcp_header = tuple(namespace.mcp_header)
    namespace.set = tuple(namespace.set)
    return ChatFlags(**vars(namespace), command=command), rest


def _is_text(argument: str) -> bool:
    """Tells whether an argument was valid UTF-8; Python turns other bytes into lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in argument)


def choose_mcp_servers(flags: ChatFlags) -> McpServers:
    """Reads the MCP servers. Raises InvalidOption.

    A model in this process gets their URLs as options, and a server gets them in each request.
    """
    return read_mcp_servers(
        flags.mcp,
        flags.mcp_header,
        asks=flags.mcp_approval == "always",
        sends_urls=bool(flags.url),
    )


def api_key(flags: ChatFlags) -> str:
    return flags.api_key or os.environ.get("OPENAI_API_KEY", "")


def own_flags() -> list[str]:
    """Returns the names of the long options, for suggestions."""
    options = (option for action in chat_parser()._actions for option in action.option_strings)
    return [option for option in options if option.startswith("--")]


def chat_parser() -> OneLineParser:
    return make_chat_parser("chat", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)


def make_chat_parser(command: str, *, usage: str, description: str, epilog: str) -> OneLineParser:
    """Returns the parser of a command that chats, with the options of all such commands."""
    parser = OneLineParser(
        prog=f"ouzel {command}",
        usage=usage,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_chat_options(parser)
    return parser


def _add_chat_options(parser: OneLineParser) -> None:
    parser.add_argument(
        "-p",
        "--prompt",
        metavar="TEXT",
        help="print one answer to this text and to the text of standard input",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the answer as one JSON object, with its usage (with -p)",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE",
        default="",
        help="answers are JSON that matches the JSON schema in the file",
    )
    parser.add_argument(
        "--system", metavar="TEXT", default="", help="the system message of the conversation"
    )
    parser.add_argument(
        "--image", metavar="PATH", default=[], action="append", help="an image; repeatable"
    )
    parser.add_argument(
        "--tools", metavar="FILE.py", default="", help="functions that the model may call"
    )
    parser.add_argument(
        "--mcp",
        metavar="URL",
        default=[],
        action="append",
        help="an MCP server whose tools the model may call, or its label in mcp_servers; "
        "repeatable",
    )
    parser.add_argument(
        "--mcp-header",
        metavar="HEADER",
        default=[],
        action="append",
        help="a header for an MCP server: [LABEL=]NAME: VALUE; ${VARIABLE} in it stands for a "
        "variable of the environment, so that no secret is typed; repeatable",
    )
    parser.add_argument(
        "--mcp-approval",
        choices=("always", "never"),
        default="always",
        help="whether you are asked before a call of an MCP tool (default: always)",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        default=[],
        action="append",
        help="a field of the request, such as temperature=0.2; repeatable",
    )
    parser.add_argument("--url", default="", help="use this server, such as http://localhost:8000")
    parser.add_argument(
        "--api-key", metavar="KEY", default="", help="the server's API key; or OPENAI_API_KEY"
    )
    parser.add_argument(
        "--model",
        dest="model_name",
        metavar="NAME",
        default="",
        help="a model of the server (default: its first)",
    )
