"""Reads the marks in a response template: plain texts, or regular expressions of a simple form.

A pattern consists of alternatives, also in groups. Each alternative begins with a text; then
whitespace, a name in a group, or anything up to the next text may follow. Optional or repeated
whitespace matches any amount. A name may contain dashes, like function names.
"""

import enum
import itertools
import re
from dataclasses import dataclass

from ouzel.parsers.reading_parser import WHITESPACE


class PatternError(ValueError):
    """A pattern with an unsupported form. The message quotes the unsupported part."""


class Gap(enum.Enum):
    SPACE = "whitespace, if any"
    NAME = "a name"
    ANYTHING = "anything up to the next text"


@dataclass(frozen=True, slots=True)
class Mark:
    """Describes one alternative of a pattern."""

    text: str  # the beginning of the mark; never empty
    rest: tuple[str | Gap, ...] = ()
    group: str = ""  # the name of the group that matches the function's name
    has_space_before: bool = False  # the mark includes the whitespace before it

    @property
    def has_space(self) -> bool:
        return self.has_space_before or Gap.SPACE in self.rest

    def spelled(self, name: str = "") -> str:
        """Returns the shortest text that matches the mark."""
        gaps = {Gap.SPACE: "", Gap.NAME: name, Gap.ANYTHING: ""}
        return self.text + "".join(
            part if isinstance(part, str) else gaps[part] for part in self.rest
        )


_PART = re.compile(
    r"(?P<space>(?:\\[snrt]|[ \n])[*+?])"
    r"|\(\?P<(?P<group>\w+)>(?:\\w|\[[\\w_-]+\]|\[\^[^\]]+\])\+\)"
    r"|(?P<anything>\.\*\?)"
    r"|\\(?P<escaped>[^\w\s])|(?P<control>\\[nrt])|(?P<plain>[^\\.^$*+?{}\[\]|()])"
)
_STRUCTURE = re.compile(r"\\.|\[\^?\]?[^\]]*\]|[()|]", re.DOTALL)
_ENDS = ("$", r"\Z")  # patterns for the end of the output
_MAX_ALTERNATIVES = 16
_MAX_CHARS = 1000
_CONTROLS = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


def read_patterns(pattern: str, *, may_be_end: bool = False) -> tuple[Mark, ...]:
    """Returns a mark for each alternative.

    With `may_be_end`, an alternative for the end of the output is left out. Raises PatternError.
    """
    if len(pattern) > _MAX_CHARS:
        raise PatternError(f"pattern of {len(pattern)} characters, of {_MAX_CHARS} at most")
    marks: list[Mark] = []
    for alternative in _alternatives(pattern):
        if may_be_end and alternative in _ENDS:
            continue
        mark = _read_alternative(alternative)
        # A mark that an earlier one always matches first is useless.
        if not any(mark.text.startswith(earlier.text) and not earlier.rest for earlier in marks):
            marks.append(mark)
    return tuple(marks)


def _alternatives(pattern: str) -> list[str]:
    """Returns the alternatives in the order in which they are tried, without unnamed groups."""
    depth, bars, groups = 0, [-1], []
    for found in _STRUCTURE.finditer(pattern):
        if found[0] == "|" and depth == 0:
            bars.append(found.start())
        elif found[0] == "(":
            depth += 1
            if depth == 1:
                groups.append([found.start()])
        elif found[0] == ")":
            depth -= 1
            if depth == 0:
                groups[-1].append(found.end())
    if len(bars) > 1:
        parts = [
            pattern[start + 1 : end] for start, end in itertools.pairwise([*bars, len(pattern)])
        ]
        return [text for part in parts for text in _alternatives(part)]
    for begin, *end in groups:
        if end and pattern.startswith("(?:", begin):
            return _without_group(pattern, begin, end[0])
    return [pattern]


def _without_group(pattern: str, begin: int, end: int) -> list[str]:
    """Returns one pattern for each alternative of the group, with the alternative in the group's
    place.
    """
    rest = pattern[end:]
    inner = _alternatives(pattern[begin + 3 : end - 1]) + ([""] if rest.startswith("?") else [])
    if rest.startswith(("*", "+", "{")) or len(inner) > _MAX_ALTERNATIVES:
        raise PatternError(f"pattern {pattern!r}")
    patterns = [pattern[:begin] + text + rest.removeprefix("?") for text in inner]
    alternatives = [text for each in patterns for text in _alternatives(each)]
    if len(alternatives) > _MAX_ALTERNATIVES:
        raise PatternError(f"pattern {pattern!r}")
    return alternatives


def _read_alternative(pattern: str) -> Mark:
    parts: list[str | Gap] = []
    group, at = "", 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            raise PatternError(f"pattern {pattern!r} from {pattern[at:]!r} on")
        at = part.end()
        if part["space"]:
            parts.append(Gap.SPACE)
        elif part["group"]:
            parts.append(Gap.NAME)
            group = part["group"]
        elif part["anything"]:
            parts.append(Gap.ANYTHING)
        else:
            char = part["escaped"] or part["plain"] or _CONTROLS[part["control"]]
            if parts and isinstance(parts[-1], str):
                parts[-1] += char
            else:
                parts.append(char)
    has_space_before = parts[:1] == [Gap.SPACE]
    if has_space_before:
        del parts[0]
    if not parts or not isinstance(parts[0], str) or not _can_be_told(parts):
        raise PatternError(f"pattern {pattern!r}")
    return Mark(parts[0], tuple(parts[1:]), group, has_space_before)


def _can_be_told(parts: list[str | Gap]) -> bool:
    """Tells whether each part ends where the next one begins, and there is at most one name."""
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        begin = following[0] if isinstance(following, str) else ""
        match part:
            case Gap.ANYTHING if not begin:
                return False
            case Gap.SPACE if begin and begin in WHITESPACE:
                return False
            case Gap.NAME if begin.isalnum() or (begin and begin in "_-"):
                return False
            case _:
                pass
    return parts.count(Gap.NAME) <= 1
