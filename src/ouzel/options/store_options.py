"""Commands that serve nothing have few options; the environment and the config file say the rest, as for serve."""

import argparse

from ouzel.terminal.one_line_parser import OneLineParser


def store_parser(command: str, description: str) -> OneLineParser:
    """Returns a parser that knows where our cache is."""
    parser = OneLineParser(prog=f"ouzel {command}", description=description, allow_abbrev=False)
    parser.add_argument(
        "--cache-dir",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="where compressed weights are kept (default: $XDG_CACHE_HOME/ouzel or ~/.cache/ouzel)",
    )
    return parser


def add_log_options(parser: OneLineParser) -> None:
    for flag, text in (("--log-level", "what is logged"), ("--log-format", "text or json")):
        parser.add_argument(flag, default=argparse.SUPPRESS, help=f"{text}, as for ouzel serve")


def add_text_option(parser: OneLineParser) -> None:
    parser.add_argument(
        "--calibration-text",
        metavar="FILE",
        default="",
        help="a text like the prompts and answers to come; its first 12,288 tokens count (default: a text of Ouzel's)",
    )
