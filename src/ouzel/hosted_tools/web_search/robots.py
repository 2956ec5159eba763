"""Reads robots.txt, by RFC 9309: the longest rule that matches decides.

Python's own parser knows no `*` and no `$`, and lets the first rule decide. Matching takes linear
time for each rule, however a stranger writes it.
"""

import re
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote, urlsplit

MAX_ROBOTS_BYTES = 500 * 2**10
_MAX_RULES = 5000
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")
_PRODUCT = re.compile("[A-Za-z_-]+")
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class Rule:
    is_allowed: bool
    pattern: str

    def match(self, path: str) -> bool:
        """Tells whether the pattern matches the beginning of a path; `$` stands for its end."""
        pattern = self.pattern
        is_whole = pattern.endswith("$")
        first, *others = pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        if not others:
            return not is_whole or len(path) == len(first)
        position = len(first)
        *inner, last = others
        for part in inner:
            found = path.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        if is_whole:
            return path.endswith(last) and len(path) - len(last) >= position
        return path.find(last, position) >= 0


@dataclass(frozen=True, slots=True)
class Robots:
    """Has the rules of one site for one agent."""

    rules: tuple[Rule, ...] = ()

    def permit(self, url: str) -> bool:
        parts = urlsplit(url)
        path = _normalize((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        longest = -1
        is_allowed = True
        for rule in self.rules:
            length = len(rule.pattern)
            decides = length > longest or (length == longest and rule.is_allowed)
            if decides and rule.match(path):
                longest, is_allowed = length, rule.is_allowed
        return is_allowed


def read_robots(data: bytes, product: str) -> Robots:
    """Reads the rules for an agent; groups for all agents count if no group names it."""
    own: list[Rule] = []
    common: list[Rule] = []
    is_named = False
    groups: list[list[Rule]] = []  # the lists to which the next rules belong
    begins_group = True
    if len(data) > MAX_ROBOTS_BYTES:
        data = data[:MAX_ROBOTS_BYTES].rpartition(b"\n")[0]  # The last line would be cut.
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if key == "user-agent":
            if not begins_group:
                groups, begins_group = [], True
            if value == "*":
                named = common
            elif _names(value, product):
                named = own
                is_named = True
            else:
                continue
            if not any(group is named for group in groups):  # a stranger may repeat the line
                groups.append(named)
        elif key in ("allow", "disallow"):
            begins_group = False
            if value:
                rule = Rule(key == "allow", _normalize(value))
                for group in groups:
                    group.append(rule)
    return Robots(tuple(islice(own if is_named else common, _MAX_RULES)))


def _names(value: str, product: str) -> bool:
    found = _PRODUCT.match(value)
    return found is not None and found[0].lower() == product.lower()


def _normalize(path: str) -> str:
    """Returns a path in which equal characters are written equally."""

    def rewrite(escape: re.Match[str]) -> str:
        character = chr(int(escape[1], 16))
        return character if _UNRESERVED.fullmatch(character) else escape[0].upper()

    return _ESCAPE.sub(rewrite, quote(path, safe=_ASCII))
