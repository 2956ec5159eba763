"""Marks as a model's authors write them: texts, or regular expressions as far as these can be told from a start.

A pattern begins with a text; whitespace, a name in a group and anything at all up to the next text may follow it.
Where whitespace is optional or repeated any whitespace will do. A name may have dashes, as functions may.
"""

import enum
import re
from dataclasses import dataclass

from ouzel.parsers.reading import WHITESPACE


class PatternError(ValueError):
    """The pattern can mean more than one text that begins the same way; says which part."""


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
        """The shortest text that the mark stands for."""
        gaps = {Gap.SPACE: "", Gap.NAME: name, Gap.ANYTHING: ""}
        return self.text + "".join(part if isinstance(part, str) else gaps[part] for part in self.rest)


_PART = re.compile(
    r"(?P<space>(?:\\[snrt]|[ \n])[*+?])"
    r"|\(\?P<(?P<group>\w+)>(?:\\w|\[[\\w_-]+\])\+\)"
    r"|(?P<anything>\.\*\?)"
    r"|\\(?P<escaped>[^\w\s])|(?P<control>\\[nrt])|(?P<plain>[^\\.^$*+?{}\[\]|()])"
)
_CONTROLS = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}


def read_pattern(pattern: str) -> Mark:
    """Raises PatternError."""
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
            parts[-1:] = [parts[-1] + char] if parts and isinstance(parts[-1], str) else [*parts[-1:], char]
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
