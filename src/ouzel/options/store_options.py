"""Defines the few flags of commands that serve no model; environment and file set the rest."""

import argparse

from ouzel.terminal.one_line_parser import OneLineParser


def store_parser(command: str, description: str) -> OneLineParser:
    """Returns a parser with the flag of Ouzel's cache directory."""
    parser = OneLineParser(prog=f"ouzel {command}", description=description, allow_abbrev=False)
    parser.add_argument(
        "--cache-dir",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="directory of compressed weights (default: $XDG_CACHE_HOME/ouzel or ~/.cache/ouzel)",
    )
    return parser


def add_catalogue_option(parser: OneLineParser) -> None:
    parser.add_argument(
        "--catalogue",
        metavar="FILE|URL",
        default=argparse.SUPPRESS,
        help="a JSON file, or its URL, with short names (default: the bundled catalogue)",
    )


def add_log_options(parser: OneLineParser) -> None:
    for flag, text in (("--log-level", "lowest level to log"), ("--log-format", "text or json")):
        parser.add_argument(flag, default=argparse.SUPPRESS, help=f"{text}, as for ouzel serve")


def add_text_option(parser: OneLineParser) -> None:
    parser.add_argument(
        "--calibration-text",
        metavar="FILE",
        default="",
        help="a text similar to the expected prompts and answers; the first 12,288 tokens count "
        "(default: a text of Ouzel)",
    )
