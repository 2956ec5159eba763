"""Turns named arguments, written as literals of Python and similar languages, into JSON while they
arrive.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.parsers.parameter_reading_parser import ParameterReadingParser
from ouzel.parsers.reading_parser import WHITESPACE, Reading
from ouzel.parsers.typed_values import ValueType, in_json_string, json_string
from ouzel.types.tools import FunctionTool

_QUOTES = ('"""', "'''", '"', "'")
_CLOSERS = ")]}"
_SCALAR_ENDS = ",)]}<\n"
_AFTER_STRING = ",:;" + _SCALAR_ENDS
_CONSTANTS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
_SAME_ESCAPES = 'ntrbf\\"'  # escapes that JSON has too
_OTHER_ESCAPES = {"'": "'", "/": "/", "\n": "", "a": "\\u0007", "v": "\\u000b"}
_CODES = {"x": 2, "u": 4, "U": 8}  # escape -> number of hexadecimal digits
_NUMBER = re.compile(r"([+-]?)((?:0|[1-9][0-9_]*)?)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(r"-?(?:(?:0(?=\.)|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?")
_ANYTHING = ValueType()


@dataclass(slots=True)
class _Container:
    is_object: bool
    num_items: int = 0


class LiteralReadingParser(ParameterReadingParser):
    """Reads named literals. A string may contain its own quote unescaped: it ends where a value can
    end.
    """

    def __init__(self, tools: Sequence[FunctionTool], *, raw_quotes: tuple[str, ...] = ()) -> None:
        """`raw_quotes` are quotes of strings without escapes."""
        super().__init__(tools)
        self._raw_quotes = raw_quotes

    def read_named(self, sign: str, end: str) -> Reading[None]:
        """Reads the arguments of an open call: names, each followed by `sign` and a literal, up to
        `end`.

        Text that cannot be an argument ends the call, too, and is content.
        """
        self.commit()
        while True:
            yield from self.pass_whitespace()
            key = yield from self.pass_key(sign)
            if key is None:
                break
            value_type = self.begin_parameter(key)
            self.commit()
            if not (yield from self._read_whole(value_type)):
                return
            yield from self.pass_whitespace()
            if (yield from self.passes(",")) is None:
                break
            self.commit()
        yield from self._close(end)

    def _close(self, end: str) -> Reading[None]:
        self.rewind()
        yield from self.pass_whitespace()
        is_end = yield from self.passes(end)
        if not is_end and self._is_cut and _is_name(self._text[self._at :]):
            self.drop_rest()
            return
        if not is_end:
            self.rewind()
        self.close_call()
        self.commit()

    def pass_key(self, sign: str) -> Reading[str | None]:
        """Consumes a name and the sign after it; None if there is no name."""
        key = yield from self.pass_until(sign, *"(){}[],\n")
        if key is None or (yield from self.passes(sign)) is None:
            return None
        key = key.strip(WHITESPACE)
        for quote in (*self._raw_quotes, '"', "'"):
            key = key.removeprefix(quote).removesuffix(quote)
        return key or None

    def read_object(self) -> Reading[bool]:
        """Reads all arguments of an open call from one literal; False if it is cut off or
        invalid.
        """
        return (yield from self._read_whole(_ANYTHING))

    def _read_whole(self, value_type: ValueType) -> Reading[bool]:
        is_whole = yield from self._read_literal(value_type)
        if is_whole:
            self.commit()
        elif self._is_cut and _is_name(self._text):
            self.drop_rest()
        return is_whole

    def _read_literal(self, value_type: ValueType) -> Reading[bool]:
        """Forwards one value as JSON; False if it is cut off or invalid."""
        containers: list[_Container] = []
        while True:
            yield from self.pass_whitespace()
            self.commit()
            char = yield from self.peek()
            if not char:
                return False
            if containers and char in _CLOSERS:  # a comma may stand before the closer
                self._end(containers)
            else:
                if containers and not (yield from self._begin_item(containers[-1])):
                    return False
                char = yield from self.peek()
                if char and char in "([{":
                    self._at += 1
                    self.arguments("{" if char == "{" else "[")
                    containers.append(_Container(char == "{"))
                    continue
                if not (yield from self._read_scalar(_ANYTHING if containers else value_type)):
                    return False
            if not (yield from self._pass_ends(containers)):
                return False
            if not containers:
                return True

    def _pass_ends(self, containers: list[_Container]) -> Reading[bool]:
        """Consumes the closers after a value up to a comma or the outermost one; False for anything
        else.
        """
        while containers:
            yield from self.pass_whitespace()
            char = yield from self.peek()
            if not char or char not in "," + _CLOSERS:
                return False
            if char == ",":
                self._at += 1
                return True
            self._end(containers)
        return True

    def _end(self, containers: list[_Container]) -> None:
        self._at += 1
        self.commit()
        self.arguments("}" if containers.pop().is_object else "]")

    def _begin_item(self, container: _Container) -> Reading[bool]:
        if container.num_items:
            self.arguments(", ")
        container.num_items += 1
        return not container.is_object or (yield from self._read_key())

    def _read_key(self) -> Reading[bool]:
        if quote := (yield from self._pass_quote()):
            if not (yield from self._read_string(quote)):
                return False
            yield from self.pass_whitespace()
        else:
            key = yield from self.pass_until(":", *"{}[],\n")
            if key is None or (yield from self.peek()) != ":":
                return False
            self.arguments(json_string(key.strip(WHITESPACE)))
        if (yield from self.passes(":")) is None:
            return False
        self.arguments(": ")
        yield from self.pass_whitespace()
        self.commit()
        return True

    def _read_scalar(self, value_type: ValueType) -> Reading[bool]:
        if quote := (yield from self._pass_quote()):
            return (yield from self._read_string(quote))
        while (char := (yield from self.peek())) and char not in _SCALAR_ENDS:
            self._at += 1
        text = self._text[: self._at].strip(WHITESPACE)
        self.commit()
        is_cut = char == "" and self._is_cut
        self.arguments(_scalar_start(text, value_type) if is_cut else _scalar(text, value_type))
        return char != ""

    def _pass_quote(self) -> Reading[str | None]:
        quote = yield from self.passes(*self._raw_quotes, *_QUOTES)
        rest = self._text[self._at :]
        may_be_quote = any(mark.startswith(rest) for mark in self._raw_quotes)
        if quote is None and self._is_cut and may_be_quote:
            self.drop_rest()
        return quote

    def _read_string(self, quote: str) -> Reading[bool]:
        is_raw = quote in self._raw_quotes
        self.commit()
        self.arguments('"')
        while True:
            marker = yield from self.give_until(
                self._give_text, quote, *([] if is_raw else "\\"), keeps_cut=False
            )
            if marker is None:
                if self._is_cut:
                    self.drop_rest()
                return False
            if marker == "\\":
                yield from self._read_escape()
                continue
            ends = is_raw or (yield from self._ends_value())
            if ends is None:
                return False
            self.arguments('"') if ends else self._give_text(quote)
            if ends:
                return True

    def _give_text(self, text: str) -> None:
        self.arguments(in_json_string(text))

    def _ends_value(self) -> Reading[bool | None]:
        """Tells whether the quote just passed ends the string; None if the text is cut off behind
        it.
        """
        yield from self.pass_whitespace()
        char = yield from self.peek()
        if not char and self._is_cut:
            self.drop_rest()
            return None
        self.rewind()
        return not char or char in _AFTER_STRING

    def _read_escape(self) -> Reading[None]:
        """Reads an escape after its backslash; an unknown escape stays unchanged, as in Python."""
        char = yield from self.peek()
        if not char:
            self.arguments("" if self._is_cut else "\\\\")
            return
        self._at += 1
        if char in _SAME_ESCAPES:
            self.arguments("\\" + char)
        elif char in _OTHER_ESCAPES:
            self.arguments(_OTHER_ESCAPES[char])
        elif char in _CODES or char in "01234567":
            self._at -= char not in _CODES
            yield from self._read_code(char)
        else:
            self.arguments("\\\\" + in_json_string(char))
        self.commit()

    def _read_code(self, char: str) -> Reading[None]:
        size, allowed = 3, string.octdigits
        if char in _CODES:
            size, allowed = _CODES[char], string.hexdigits
        digits = ""
        while len(digits) < size and (digit := (yield from self.peek())) and digit in allowed:
            digits += digit
            self._at += 1
        if len(digits) < size and self._is_cut and not (yield from self.peek()):
            return
        is_code = len(digits) == size or char not in _CODES
        base = 16 if char in _CODES else 8
        self.arguments(_character(int(digits, base)) if is_code else "\\\\" + char + digits)


def _character(code: int) -> str:
    """Writes one character for a JSON string; half of a surrogate pair stays escaped."""
    if 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return in_json_string(chr(code)) if code <= 0x10FFFF else "\\ufffd"


def _scalar(text: str, value_type: ValueType) -> str:
    """Writes a constant or a number as JSON, with unchanged digits, and any other word as a string.

    A missing value stays missing: then the arguments are not valid JSON.
    """
    constant = _CONSTANTS.get(text)
    if constant is not None and (constant == "null" or not value_type.is_text):
        return constant
    number = None if value_type.is_text else _NUMBER.fullmatch(text)
    if number and (number[2] or number[3]):
        fraction = "" if number[3] is None else "." + (number[3] or "0")
        whole = number[2].replace("_", "") or "0"
        return number[1].strip("+") + whole + fraction + (number[4] or "")
    return json_string(text) if text else ""


def _scalar_start(text: str, value_type: ValueType) -> str:
    """Writes the beginning of a scalar that was cut off, unless it could have become something
    else.
    """
    if value_type.is_text:
        return ""
    return text if _NUMBER_START.fullmatch(text) else ""


def _is_name(text: str) -> bool:
    """Tells whether `text` can be the beginning of an argument's name; an empty text can."""
    return not set(text) & set("(){}[]\n")
