r"""Translates the regular expressions of clients to the grammar engine's dialect.

The input dialect is XGrammar's: the whole text must match, a dot matches newlines too, `\d \w \s`
are ASCII. Unsupported features (look-around, back references, word boundaries) are refused by name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from ouzel.grammar.caps import MAX_LEVELS, MAX_PATTERN_CHARS, check_at_most
from ouzel.grammar.errors import GrammarError

ANY_TEXT = "(?s:.*)"

_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\r\x0b\x0c"}
_BLANKS = r"\t\n\x0b\x0c\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}"
# where dialects differ, neither class matches
_SEARCH_CLASSES = {**_CLASSES, "s": _BLANKS, "S": _BLANKS + r"\u{85}\u{FEFF}"}
_NO_LINE_END = r"[^\n\r\u{2028}\u{2029}]"
_CONTROLS = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\x0b": r"\x0b", "\x0c": r"\x0c", "\0": r"\x00"}
_SAME = frozenset("nrtfv")  # letters with the same meaning in both dialects
_SET_SIGNS = ("[", "&&", "--", "~~")  # Rust reads these as classes within classes
_CLASS_LETTER = re.compile(r"\\[dwsDWSpP]")
_NO_RANGE = re.compile(r"[-\]]|\\[dwsDWSpP]")  # after a `-` that is a plain sign elsewhere
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_START_OF_OPTION = re.compile(r"(?:^|(?<!\\)(?:\\\\)*\|)\Z")
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|:))?(?!\?)")
_CODE = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[xu]\{[0-9A-Fa-f]{1,6}\}|[pP](?:\{[^{}]+\}|[A-Z]))"
)
_LONG_CODE = re.compile(r"\\U[0-9A-Fa-f]{8}")  # ECMAScript reads `\U` as the letter U


class Anchors(Enum):
    """The places where a pattern may have `^` and `$`."""

    AT_ENDS = auto()  # ends of the pattern or its alternatives, where they have no effect
    ANYWHERE = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Pattern:
    lark: str  # `/.../`
    is_unbounded: bool


def escape(text: str) -> str:
    """Returns a pattern for exactly this text, for use between slashes."""
    return "".join(
        char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):X}}}" for char in text
    )


def read_pattern(pattern: str, path: str, *, anchors: Anchors = Anchors.AT_ENDS) -> Pattern:
    """Reads a pattern that the whole text must match.

    Raises GrammarError with the unsupported feature and its place.
    """
    reader = _Reader(pattern, path, anchors)
    body = reader.read()
    return Pattern(f"/(?s:{body})/", reader.is_unbounded)


def search_pattern(pattern: str, path: str) -> str:
    r"""Reads a JSON schema's `pattern`, which may match anywhere, for the engine's JSON schemas.

    The dialect is ECMAScript's: a dot matches no line end, and the engine's `\s` matches a blank
    that ECMAScript's does not. Raises GrammarError.
    """
    return _Reader(pattern, path, Anchors.ANYWHERE, dot=_NO_LINE_END).read()


def line_pattern(
    pattern: str, path: str, *, dot_matches_all: bool = False, spell: Callable[[str], str] = str
) -> Pattern:
    """Reads a pattern of a custom tool, which the whole text must match. Raises GrammarError.

    The dialect is Rust's with ASCII classes: a dot matches no line feed. `spell` rewrites the
    expression of each single character.
    """
    dot = r"[\s\S]" if dot_matches_all else r"[^\n]"
    reader = _Reader(pattern, path, Anchors.AT_ENDS, is_rust=True, dot=dot, spell=spell)
    return Pattern(f"/(?:{reader.read()})/", reader.is_unbounded)


class _Reader:
    def __init__(
        self,
        pattern: str,
        path: str,
        anchors: Anchors,
        *,
        is_rust: bool = False,
        dot: str = ".",
        spell: Callable[[str], str] = str,
    ) -> None:
        check_at_most(f"the number of characters of {path}", len(pattern), MAX_PATTERN_CHARS)
        self._pattern = pattern
        self._path = path
        self._anchors = anchors
        self._is_rust = is_rust
        self._dot = dot
        self._spell = spell
        self._is_search = anchors is Anchors.ANYWHERE
        self._classes = _SEARCH_CLASSES if self._is_search else _CLASSES
        self._at = 0
        self._depth = 0
        self.is_unbounded = False

    def read(self) -> str:
        written = []
        while self._at < len(self._pattern):
            written.append(self._next())
        if self._depth:
            raise self._refusal("a group without an end")
        return "".join(written)

    def _next(self) -> str:
        char = self._pattern[self._at]
        if quantifier := _QUANTIFIER.match(self._pattern, self._at):
            return self._quantifier(quantifier)
        match char:
            case "\\":
                return self._spell(self._escape(in_class=False))
            case "[":
                return self._spell(self._class())
            case "(":
                return self._group()
            case ")":
                self._depth -= 1
                if self._depth < 0:
                    raise self._refusal("a group without a beginning")
            case "^" | "$":
                return self._anchor(char)
        self._at += 1
        return self._spell(self._dot if char == "." else _plain(char))

    def _quantifier(self, match: re.Match[str]) -> str:
        """Reads a quantifier; makes lazy ones greedy, because they match the same texts."""
        text = match[0]
        self._at = match.end()
        self.is_unbounded |= text[0] in "*+" or ",}" in text
        return text.removesuffix("?") if len(text) > 1 else text

    def _group(self) -> str:
        match = _GROUP.match(self._pattern, self._at)
        if not match:
            start = self._pattern[self._at : self._at + 4]
            is_look = start[2:3] in {"=", "!"} or start[2:] in {"<=", "<!"}
            raise self._refusal("look-around" if is_look else f"the group {start[:3]!r}")
        self._at = match.end()
        self._depth += 1
        check_at_most(f"the nesting of {self._path}", self._depth, MAX_LEVELS)
        return "(?:"

    def _anchor(self, char: str) -> str:
        before, after = self._pattern[: self._at], self._pattern[self._at + 1 :]
        is_at_end = (
            bool(_START_OF_OPTION.search(before)) if char == "^" else (after[:1] in {"", "|"})
        )
        is_harmless = is_at_end and self._depth == 0 and self._anchors is Anchors.AT_ENDS
        if not is_harmless and self._anchors is not Anchors.ANYWHERE:
            raise self._refusal(f"{char!r} within the pattern")
        self._at += 1
        return char if self._is_search else ""

    def _escape(self, *, in_class: bool) -> str:
        long_code = None if self._is_search else _LONG_CODE.match(self._pattern, self._at)
        if code := long_code or _CODE.match(self._pattern, self._at):
            self._at = code.end()
            return code[0]
        letter = self._pattern[self._at + 1 : self._at + 2]
        self._at += 2
        if letter and letter.lower() in self._classes:
            return self._write_class(letter, in_class=in_class)
        if letter in _SAME:
            return "\\" + letter
        if letter == "0":
            return r"\x00"
        if letter == "b" and in_class:
            return r"\x08"
        if not letter or letter.isalnum():
            raise self._refusal(_what_escape(letter))
        is_plain = letter.isascii() and letter.isprintable() and letter != " "
        return "\\" + letter if is_plain else _plain(letter)

    def _write_class(self, letter: str, *, in_class: bool) -> str:
        r"""Writes `\d`, `\w` or `\s` as a class.

        A capital letter stands for all other characters.
        """
        chars = self._classes.get(letter, self._classes[letter.lower()])
        if letter.isupper():
            return f"[^{chars}]"
        return chars if in_class else f"[{chars}]"

    def _class(self) -> str:
        self._at += 1
        written = ["["]
        if self._pattern.startswith("^", self._at):
            written.append("^")
            self._at += 1
        while not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise self._refusal("a character class without an end")
            is_of_class = bool(_CLASS_LETTER.match(self._pattern, self._at))
            written.append(self._class_char())
            # A class cannot begin a range, so the `-` after it is a plain sign.
            if is_of_class and self._pattern.startswith("-", self._at):
                self._at += 1
                written.append(r"\-")
        if written[-1] in {"[", "^"}:
            raise self._refusal("an empty character class")
        self._at += 1
        return "".join(written) + "]"

    def _class_char(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._escape(in_class=True)
        if self._is_rust and self._pattern.startswith(_SET_SIGNS, self._at):
            raise self._refusal("a character class within another")
        self._at += 1
        if char == "-" and _NO_RANGE.match(self._pattern, self._at):
            return r"\-"
        return "\\" + char if char in "[&~^|" else _plain(char)

    def _refusal(self, what: str) -> GrammarError:
        return GrammarError(
            f"{self._path} has {what}, which is not supported in regular expressions"
        )


def _plain(char: str) -> str:
    if char in "/{}":
        return "\\" + char
    return _CONTROLS.get(char, char)


def _what_escape(letter: str) -> str:
    if letter in {"b", "B"}:
        return f"the word boundary \\{letter}"
    if letter.isdigit() or letter == "k":
        return f"the back reference \\{letter}"
    return f"the escape \\{letter}" if letter else "a backslash at its end"
