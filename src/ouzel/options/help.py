"""Writes the texts of `ouzel serve -h` and `--help` from the records of `ouzel.config`."""

import shutil
import textwrap
from collections.abc import Iterable

from ouzel.options.options import CONFIG_DESCRIPTION
from ouzel.options.records import RECORDS, Option, list_options

_INVOCATION_COLUMNS = 30
_MAX_COLUMNS = 120
_COMMON = "Common options"

_INTRODUCTION = """\
Serves a model over the OpenAI API. MODEL is {model} (default: {default}).

Each option is a flag (--max-num-seqs), an environment variable (OUZEL_MAX_NUM_SEQS) and a key of \
the --config file (max_num_seqs). A flag beats the environment, which beats the file."""


def short_help() -> str:
    """Returns the common options, which fit on one screen."""
    sections = _sections()
    num_others = sum(map(len, sections.values())) - len(sections[_COMMON])
    hint = f"All options ({num_others} more): ouzel serve --help"
    return "\n".join([_beginning(), "", *_section(_COMMON, sections[_COMMON]), "", hint, ""])


def full_help() -> str:
    """Returns all options, the common ones first."""
    sections = [
        line
        for heading, options in _sections().items()
        for line in ["", *_section(heading, options)]
    ]
    return "\n".join([_beginning(), *sections, ""])


def _sections() -> dict[str, list[Option]]:
    sections: dict[str, list[Option]] = {_COMMON: []}
    for record in RECORDS:
        for option in list_options(record):
            if option.name != "model":
                sections.setdefault(_COMMON if option.is_common else option.heading, []).append(
                    option
                )
    return sections


def _beginning() -> str:
    [model] = [
        option for record in RECORDS for option in list_options(record) if option.name == "model"
    ]
    description = model.description[0].lower() + model.description[1:].removesuffix(".")
    introduction = _INTRODUCTION.format(model=description, default=model.default_text)
    paragraphs = [textwrap.fill(paragraph, _columns()) for paragraph in introduction.split("\n\n")]
    return "\n\n".join(["usage: ouzel serve [MODEL] [OPTIONS]", *paragraphs])


def _section(heading: str, options: Iterable[Option]) -> list[str]:
    lines = [heading]
    for option in options:
        lines += _entry(option.invocation, option.help)
    if heading == _COMMON:
        lines += _entry("--config FILE", f"{CONFIG_DESCRIPTION} (default: none)")
        lines += _entry("-h, --help", "Show the common options (-h) or all options (--help).")
    return lines


def _entry(invocation: str, text: str) -> list[str]:
    """Returns the lines of one option: the text beside the invocation, or below a long one."""
    indent = min(_INVOCATION_COLUMNS, _columns() // 2)
    lines = textwrap.wrap(text, _columns() - indent, break_on_hyphens=False, break_long_words=False)
    begin = f"  {invocation}".ljust(indent)
    if len(begin) > indent or begin[-1] != " ":
        return [begin, *(" " * indent + line for line in lines)]
    return [begin + lines[0], *(" " * indent + line for line in lines[1:])]


def _columns() -> int:
    return min(shutil.get_terminal_size((100, 50)).columns, _MAX_COLUMNS)
