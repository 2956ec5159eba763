"""Lists the commands with their arguments and flags, and the values that a shell can complete."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ouzel.cli.commands import COMMANDS, Command
from ouzel.config.weights import WIDTHS
from ouzel.options.options import CONFIG_DESCRIPTION, SHORT_FORMS
from ouzel.options.records import RECORDS, Option, list_options
from ouzel.parsers.registry import FAMILIES


class Value(Enum):
    NONE = "a flag that takes none"
    WORDS = "one of some words"
    FILE = "a path"
    DIRECTORY = "a directory's path"
    MODEL = "a directory, a GGUF file, or a repository in the hub's cache"
    OTHER = "anything else"


@dataclass(frozen=True, slots=True)
class Flag:
    name: str  # --name
    summary: str
    value: Value
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completed:
    """One command, as the completion scripts complete it."""

    name: str
    summary: str
    flags: tuple[Flag, ...]
    argument: Value
    words: tuple[str, ...] = ()  # the values of the argument, if it has a choice of some


_HELP = Flag("--help", "Describe the command and its options.", Value.NONE)
_FILES = frozenset(
    {
        "chat_template",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_ca_certs",
        "uds",
        "api_key_file",
        "mmproj",
    }
)
_DIRECTORIES = frozenset({"cache_dir", "data_dir", "prefix_cache_dir", "allowed_local_media_path"})
_FAMILY_NAMES = tuple(family.names[0] for family in FAMILIES)
_SUGGESTED = {
    "weights": WIDTHS,
    "tool_parser": ("auto", "none", "response_template", *_FAMILY_NAMES),
    "reasoning_parser": ("auto", "none", "response_template", *_FAMILY_NAMES),
}
_ARGUMENTS = {"MODEL": Value.MODEL, "NAME": Value.MODEL, "FILE": Value.FILE}


def read_commands() -> list[Completed]:
    """Returns all commands, in the order of their table."""
    return [_read_command(name, command) for name, command in COMMANDS.items()]


def _read_command(name: str, command: Command) -> Completed:
    actions = _actions(command)
    flags = [flag for action in actions for flag in _read_action(action)]
    if command.takes_serve_options:
        flags += [flag for flag in _serve_flags() if flag.name not in {each.name for each in flags}]
        return Completed(name, command.summary, (*flags, _HELP), Value.MODEL)
    positional = next((action for action in actions if not action.option_strings), None)
    words = () if positional is None else tuple(map(str, positional.choices or ()))
    argument = (
        Value.NONE if positional is None else _ARGUMENTS.get(str(positional.metavar), Value.OTHER)
    )
    return Completed(
        name, command.summary, (*flags, _HELP), Value.WORDS if words else argument, words
    )


def _actions(command: Command) -> list[argparse.Action]:
    parser = command.own_parser()
    return [] if parser is None else parser._actions  # argparse has no public list of them


def _serve_flags() -> Iterator[Flag]:
    for record in RECORDS:
        for option in list_options(record):
            if option.name != "model":  # MODEL is no flag
                yield _read_option(option)
            if option.is_flag:
                yield Flag(f"--no-{option.flag[2:]}", f"Off: {option.description}", Value.NONE)
    for flag, (name, value) in SHORT_FORMS.items():
        yield Flag(flag, f"The same as --{name} {value}.", Value.NONE)
    yield Flag("--config", CONFIG_DESCRIPTION, Value.FILE)


def _read_option(option: Option) -> Flag:
    words = option.choices or _SUGGESTED.get(option.name, ())
    if option.is_flag:
        value = Value.NONE
    elif words:
        value = Value.WORDS
    elif option.name == "draft_model":
        value = Value.MODEL
    elif option.name in _DIRECTORIES:
        value = Value.DIRECTORY
    elif option.name in _FILES:
        value = Value.FILE
    else:
        value = Value.OTHER
    return Flag(option.flag, option.description, value, words)


def _read_action(action: argparse.Action) -> Iterator[Flag]:
    for name in action.option_strings:
        if name.startswith("--") and name != _HELP.name:
            yield _make_flag(name, action)


def _make_flag(name: str, action: argparse.Action) -> Flag:
    summary = (action.help or "").replace("%%", "%")
    words = tuple(map(str, action.choices or ())) or _SUGGESTED.get(action.dest, ())
    metavar = str(action.metavar or "")
    if action.nargs == 0:
        value = Value.NONE
    elif words:
        value = Value.WORDS
    elif metavar == "DIR":
        value = Value.DIRECTORY
    elif metavar.startswith("FILE"):
        value = Value.FILE
    else:
        value = Value.OTHER
    return Flag(name, summary, value, words)
