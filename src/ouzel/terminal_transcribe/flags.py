"""Reads the options of `ouzel transcribe`."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import add_options
from ouzel.terminal.one_line_parser import OneLineParser

OutputFormat = Literal["text", "srt", "vtt", "json", "verbose_json"]

_USAGE = """ouzel transcribe MODEL FILE... [options]
       ouzel transcribe FILE... --url URL [options]"""
_DESCRIPTION = """\
Turns sound files into text with a speech model, such as openai/whisper-small. This program loads
MODEL, or a server with --url has one. The texts are printed in the order of the files, or written
into --output-dir. FILE may be -, for the sound on standard input."""
_EPILOG = """\
Without --url, the options of ouzel serve for the model and the engine are accepted too: ouzel serve
--help lists them."""
_MAX_CONCURRENCY = 4
_SUBTITLES = ("srt", "vtt")
_TIMED = (*_SUBTITLES, "verbose_json")
# Fields of a request that --set cannot set: the command sets them, or reads no other answers.
_OWN_FIELDS: Mapping[str, str] = {
    "chunking_strategy": "--chunking sets it, unless its value is an object",
    "file": "the command sends each FILE in it",
    "include": "the command prints no logprobs",
    "language": "--language sets it",
    "model": "MODEL or --model names it",
    "prompt": "--prompt sets it",
    "response_format": "--format sets it",
    "stream": "the command always reads a stream",
    "timestamp_granularities": "--words sets it",
}


@dataclass(frozen=True, slots=True)
class TranscribeFlags:
    """The values of the options; empty for options that are not given."""

    url: str
    api_key: str
    ca_file: str
    model_name: str
    format: OutputFormat
    output_dir: str
    language: str
    translate: bool
    prompt: str
    words: bool
    chunking: str
    set: tuple[str, ...]
    max_concurrency: int


@dataclass(frozen=True, slots=True)
class Arguments:
    flags: TranscribeFlags
    files: tuple[str, ...]
    model_arguments: tuple[str, ...]  # MODEL and the options of serve; empty with --url


def transcribe_parser() -> OneLineParser:
    parser = OneLineParser(
        prog="ouzel transcribe",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_outputs(parser)
    _add_fields(parser)
    _add_server(parser)
    return parser


def _add_outputs(parser: OneLineParser) -> None:
    parser.add_argument(
        "--format",
        choices=get_args(OutputFormat),
        default="text",
        help="the form of the outputs, with the names of the API (default: text)",
    )
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        default="",
        help="write a file for each sound into this directory: speech.srt for speech.wav",
    )
    parser.add_argument(
        "--words",
        action="store_true",
        help="the times of words: in verbose_json, or subtitles of one word each",
    )


def _add_fields(parser: OneLineParser) -> None:
    parser.add_argument(
        "--language",
        default="",
        help="the language of the speech, such as en or english (default: detected)",
    )
    parser.add_argument("--translate", action="store_true", help="the texts are English")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        default="",
        help="text before the speech: it shows names, spelling and style",
    )
    parser.add_argument(
        "--chunking",
        choices=("auto",),
        default="",
        help="auto: divide the sounds at pauses and transcribe several parts at a time",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        default=[],
        action="append",
        help="a field of the request, such as beam_size=5; repeatable",
    )
    parser.add_argument(
        "--max-concurrency",
        type=_read_number,
        metavar="N",
        default=_MAX_CONCURRENCY,
        help=f"most files at a time (default: {_MAX_CONCURRENCY})",
    )


def _add_server(parser: OneLineParser) -> None:
    parser.add_argument("--url", default="", help="use this server, such as http://localhost:8000")
    parser.add_argument(
        "--api-key", metavar="KEY", default="", help="the server's API key; or OPENAI_API_KEY"
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", default="", help="PEM certificates that the client trusts"
    )
    parser.add_argument(
        "--model",
        dest="model_name",
        metavar="NAME",
        default="",
        help="a model of the server (default: its first for speech)",
    )


def transcribe_flags() -> list[str]:
    """Returns the names of the long options, for suggestions."""
    actions = transcribe_parser()._actions  # argparse has no public way to list them
    options = [option for action in actions for option in action.option_strings]
    return [option for option in options if option.startswith("--")]


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Reads the command line. Raises InvalidOption, and SystemExit after --help."""
    namespace, rest = transcribe_parser().parse_known_args(arguments)
    namespace.set = tuple(namespace.set)
    flags = TranscribeFlags(**vars(namespace))
    _check(flags)
    names, options = _split(rest)
    if flags.url:
        if options:
            raise InvalidOption(f"{options[0]}: cannot be used with --url")
        model_arguments: list[str] = []
        files = names
    else:
        model_arguments = [*names[:1], *options]
        files = names[1:]
    if not files:
        raise InvalidOption(f"FILE is required: {_USAGE.splitlines()[bool(flags.url)].strip()}")
    if flags.format in _SUBTITLES and len(files) > 1 and not flags.output_dir:
        raise InvalidOption(f"--format {flags.format}: needs --output-dir for more than one file")
    if files.count("-") > 1:
        raise InvalidOption("FILE: - can be given once")
    return Arguments(flags, tuple(files), tuple(model_arguments))


def read_fields(flags: TranscribeFlags) -> dict[str, str]:
    """Returns the fields of each request except for the file. Raises InvalidOption."""
    fields = {"stream": "true", "response_format": "verbose_json"}
    given = {
        "model": flags.model_name,
        "language": flags.language,
        "prompt": flags.prompt,
        "chunking_strategy": flags.chunking,
        "timestamp_granularities[]": "word" if flags.words else "",
    }
    fields |= {name: value for name, value in given.items() if value}
    for text in flags.set:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise InvalidOption(f"--set: must be NAME=VALUE, given {text!r}")
        known = name.removesuffix("[]")
        is_object = known == "chunking_strategy" and value.startswith("{")
        if known in _OWN_FIELDS and not is_object:
            raise InvalidOption(f"--set {name}: {_OWN_FIELDS[known]}")
        fields[name] = value
    return fields


def _check(flags: TranscribeFlags) -> None:
    """Raises InvalidOption for options that do not go together."""
    if flags.words and flags.format not in _TIMED:
        raise InvalidOption(
            f"--words: needs --format to be one of {', '.join(_TIMED)}, given {flags.format}"
        )
    if flags.words and flags.translate:
        raise InvalidOption("--words: cannot be used with --translate")
    if flags.url:
        return
    for name, value in (
        ("--api-key", flags.api_key),
        ("--ca-file", flags.ca_file),
        ("--model", flags.model_name),
    ):
        if value:
            raise InvalidOption(f"{name}: needs --url, given without it")


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides arguments into names of files or of a model, and options of serve with their values.

    Everything after `--` is a name.
    """
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser)
    with_value = {
        flag for action in parser._actions if action.nargs != 0 for flag in action.option_strings
    }
    names: list[str] = []
    options: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            names += rest
        elif argument == "-" or not argument.startswith("-"):
            names.append(argument)
        else:
            options.append(argument)
            if argument in with_value and (value := next(rest, None)) is not None:
                options.append(value)
    return names, options


def _read_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1024, given {text!r}")
    return int(text)
