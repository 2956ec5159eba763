"""A model's authors write marks as texts, or as regular expressions, which are read as far as their start tells them.

A pattern is alternatives, also in groups, that each begin with a text; whitespace, a name in a group and anything at
all up to the next text may follow it. Where whitespace is optional or repeated any whitespace will do. A name may have
dashes, as functions may.
"""

import enum
import itertools
import re
from dataclasses import dataclass

from ouzel.parsers.reading_parser import WHITESPACE


class PatternError(ValueError):
    """A pattern can mean more than one text that begins the same way; the message says which part."""


class Gap(enum.Enum):
    SPACE = "whitespace, if any"
    NAME = "a name"
    ANYTHING = "anything up to the next text"


@dataclass(frozen=True, slots=True)
class Mark:
    text: str  # that it begins with; never empty
    rest: tuple[str | Gap, ...] = ()
    group: str = ""  # that the pattern gives to the name
    has_space_before: bool = False  # that belongs to it

    @property
    def has_space(self) -> bool:
        return self.has_space_before or Gap.SPACE in self.rest

    def spelled(self, name: str = "") -> str:
        """Returns the shortest text that the mark stands for."""
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
_ENDS = ("$", r"\Z")  # of the whole output
_MAX_ALTERNATIVES = 16
_MAX_CHARS = 1000
_CONTROLS = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


def read_patterns(pattern: str, *, may_be_end: bool = False) -> tuple[Mark, ...]:
    """Returns a mark for each alternative but, with `may_be_end`, that of the output's end. Raises PatternError."""
    if len(pattern) > _MAX_CHARS:
        raise PatternError(f"pattern of {len(pattern)} characters, of {_MAX_CHARS} at most")
    marks: list[Mark] = []
    for alternative in _alternatives(pattern):
        if may_be_end and alternative in _ENDS:
            continue
        mark = _read_alternative(alternative)
        if not any(
            mark.text.startswith(earlier.text) and not earlier.rest for earlier in marks
        ):  # that would win
            marks.append(mark)
    return tuple(marks)


def _alternatives(pattern: str) -> list[str]:
    """Returns the alternatives, with no groups but those with names, in the order in which they are tried."""
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
    """Returns the pattern with each alternative of the group in its place."""
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
            parts[-1:] = (
                [parts[-1] + char] if parts and isinstance(parts[-1], str) else [*parts[-1:], char]
            )
    has_space_before = parts[:1] == [Gap.SPACE]
    if has_space_before:
        del parts[0]
    if not parts or not isinstance(parts[0], str) or not _can_be_told(parts):
        raise PatternError(f"pattern {pattern!r}")
    return Mark(parts[0], tuple(parts[1:]), group, has_space_before)


def _can_be_told(parts: list[str | Gap]) -> bool:
    """Whether every part ends where the next begins, and there is one name at most."""
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
