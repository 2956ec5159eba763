"""Counts the places of each room that break the style of the house; the numbers may only fall.

    uv run python -m tools.house.language                # the numbers of all rooms
    uv run python -m tools.house.language ROOM --list    # every place of a room, with its text
    uv run python -m tools.house.language --write        # renews language.toml; no number may rise

A room is a folder (`tools/house/rooms.py`); ROOM stands for a room and the rooms below it, or for
one file. `language.toml` has the highest allowed numbers. `tests/test_language.py` fails if a
number is higher, and also if it is lower: `--write` then lowers the allowed number. A room that the
file does not know, for example after a move, gets its numbers by `--write` unless the total of all
rooms rises. `--allow-rise` writes the numbers as they are.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.house.fragments import is_fragment
from tools.house.pronouns import find_hanging, is_pointing
from tools.house.rooms import REPOSITORY, documents, find_room, is_in, python_files
from tools.house.texts import Text, Texts, read_texts

FILE = Path(__file__).with_suffix(".toml")
MAX_COLUMNS = 100

Numbers = dict[str, dict[str, int]]  # the keys: a room, then a measure


class Finding(NamedTuple):
    room: str
    measure: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.measure}: {self.text}"


# Measures

_EMPTY_SENTENCE = re.compile(
    r"(?:Raises|Implements|Returns|Yields|Gives|Takes|Gets|See) "
    r"(?:it|them|that|those|one|none|(?:`?[A-Z][\w.]*`?(?:,? and |,? or |, )?)+)"
)
_PREPOSITIONS = {"of", "in", "by", "for", "with", "without", "at", "on", "from", "to", "as"}
_UNIT = re.compile(r"in \w+(?: of \w+)?\.?")  # "in bytes" can be read without the line before
_EXEMPT_LINE = re.compile(r"\s*#?\s*\S+$|.*#\s*noqa\b.*E501")
_URL = re.compile(r"https?://\S+\W*$")


def _hanging(texts: Iterable[Text]) -> Iterator[Text]:
    for text in texts:
        if clause := find_hanging(text.text):
            yield Text(text.line, f"… {clause} …")


def _fragments(texts: Texts) -> Iterator[Text]:
    """Yields docstrings without a whole first sentence; a class may have a noun phrase."""
    for text in texts.docstrings:
        is_of_class = text.line in texts.class_docstring_lines
        if not is_of_class and is_fragment(text.text) and not _is_empty(text):
            yield text


def _is_empty(docstring: Text) -> bool:
    """Tells whether the docstring says only "Raises X." or "Implements X."."""
    sentences = re.split(r"[.;](?:\s+|$)", " ".join(docstring.text.split()))
    return all(_EMPTY_SENTENCE.fullmatch(sentence) for sentence in sentences if sentence)


def _long_lines(texts: Texts) -> Iterator[Text]:
    """Yields the lines over the limit. Exempt, as for ruff, are one word and a URL at the end."""
    for number, line in enumerate(texts.lines, start=1):
        if len(line) > MAX_COLUMNS and not _EXEMPT_LINE.match(line):
            url = _URL.search(line)
            if url is None or url.start() > MAX_COLUMNS:
                yield Text(number, f"{len(line)} columns")


MEASURES: dict[str, Callable[[Texts], Iterable[Text]]] = {
    "empty_docstrings": lambda texts: filter(_is_empty, texts.docstrings),
    "fragments": _fragments,
    "functions_named_of": lambda texts: (f for f in texts.functions if f.text.endswith("_of")),
    "hanging_comments": lambda texts: _hanging([*texts.comments, *texts.trailing_comments]),
    "hanging_documents": lambda texts: _hanging(texts.paragraphs),
    "hanging_docstrings": lambda texts: _hanging(texts.docstrings),
    "hanging_messages": lambda texts: _hanging(texts.messages),
    "long_lines": _long_lines,
    "pointing_docstrings": lambda texts: (
        docstring
        for docstring in texts.docstrings
        if is_pointing(docstring.text) and not _is_empty(docstring)
    ),
    "preposition_comments": lambda texts: (
        comment
        for comment in texts.trailing_comments
        if comment.text.partition(" ")[0].lower() in _PREPOSITIONS
        and not _UNIT.fullmatch(comment.text)
    ),
}


def measured_files(root: Path = REPOSITORY) -> Iterator[Path]:
    yield from python_files(root)
    yield from documents(root)


def find(paths: Iterable[Path], root: Path = REPOSITORY) -> list[Finding]:
    """Returns the findings of the files by room, measure and place."""
    return sorted(
        Finding(find_room(path), measure, path, text.line, " ".join(text.text.split())[:160])
        for path in paths
        for texts in [read_texts(path, (root / path).read_text(encoding="utf-8"))]
        for measure, measured in MEASURES.items()
        for text in measured(texts)
    )


def count(paths: Iterable[Path], findings: Iterable[Finding]) -> Numbers:
    """Returns the numbers that are not zero; a room without findings has an empty entry."""
    numbers: Numbers = {room: {} for room in sorted({find_room(path) for path in paths})}
    for (room, measure), number in Counter((f.room, f.measure) for f in findings).items():
        numbers[room][measure] = number
    return numbers


# The file of allowed numbers


def read_allowed(file: Path = FILE) -> Numbers:
    return tomllib.loads(file.read_text()) if file.exists() else {}


def write_allowed(numbers: Numbers, file: Path = FILE) -> None:
    """Writes a section for each room, sorted, so that changes of different rooms merge."""
    lines = [
        "# The highest allowed numbers; uv run python -m tools.house.language --write renews them"
    ]
    for room, measures in sorted(numbers.items()):
        lines += [
            "",
            f'["{room}"]',
            *(f"{key} = {value}" for key, value in sorted(measures.items())),
        ]
    file.write_text("\n".join(lines) + "\n")


def differences(numbers: Numbers, allowed: Numbers) -> list[str]:
    """Returns a line for each number that is not the allowed one."""
    return [
        _describe(room, measure, now, limit)
        for room in sorted(numbers.keys() | allowed.keys())
        for measure in MEASURES
        if (now := _get(numbers, room, measure)) != (limit := _get(allowed, room, measure))
    ]


def _describe(room: str, measure: str, now: int, limit: int) -> str:
    if now > limit:
        remedy = f"see `uv run python -m tools.house.language {room} --list`"
    else:
        remedy = "lower the number by `uv run python -m tools.house.language --write`"
    return f"{room}: {measure} is {now}, {FILE.name} allows {limit}: {remedy}"


def rises(numbers: Numbers, allowed: Numbers) -> list[str]:
    """Returns a line for each number that rises, in a known room or in total."""
    lines = []
    for measure in MEASURES:
        for room in allowed.keys() & numbers.keys():
            now, limit = _get(numbers, room, measure), _get(allowed, room, measure)
            if now > limit:
                lines.append(f"{room}: {measure} would rise from {limit} to {now}")
        now, limit = total(numbers, measure), total(allowed, measure)
        if now > limit:
            lines.append(f"all rooms: {measure} would rise from {limit} to {now}")
    return sorted(lines)


def total(numbers: Numbers, measure: str) -> int:
    return sum(measures.get(measure, 0) for measures in numbers.values())


def _get(numbers: Numbers, room: str, measure: str) -> int:
    return numbers.get(room, {}).get(measure, 0)


# The command


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("room", nargs="?", help="Only this folder and the rooms below it.")
    parser.add_argument("--list", action="store_true", help="List every place.")
    parser.add_argument("--measure", choices=tuple(MEASURES), help="Only this measure.")
    parser.add_argument("--write", action="store_true", help=f"Renew {FILE.name}.")
    parser.add_argument("--allow-rise", action="store_true", help="Let numbers rise, with --write.")
    arguments = parser.parse_args()
    paths = list(measured_files())
    findings = find(paths)
    numbers = count(paths, findings)
    if arguments.write:
        return _write(numbers, allows_rise=arguments.allow_rise)
    room = (arguments.room or "").rstrip("/")
    shown = [
        finding
        for finding in findings
        if (not room or is_in(finding.room, room) or str(finding.path) == room)
        and arguments.measure in (None, finding.measure)
    ]
    if arguments.list:
        for finding in shown:
            print(finding)
    else:
        _print_table(count([finding.path for finding in shown], shown))
    return 0


def _write(numbers: Numbers, *, allows_rise: bool) -> int:
    lines = [] if allows_rise or not FILE.exists() else rises(numbers, read_allowed())
    for line in lines:
        print(line, file=sys.stderr)
    if lines:
        print("Nothing was written.", file=sys.stderr)
        return 1
    write_allowed(numbers)
    return 0


def _print_table(numbers: Numbers) -> None:
    print(" ".join(f"{measure.replace('_', ' '):>20}" for measure in MEASURES))
    for room, measures in numbers.items():
        print(" ".join(f"{measures.get(measure, 0) or '':>20}" for measure in MEASURES), f" {room}")
    print(" ".join(f"{total(numbers, measure):>20,}" for measure in MEASURES), " in all")


if __name__ == "__main__":
    sys.exit(main())
