"""Arguments that are named literals, as Python and its relatives write them, become JSON while they come."""

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
_SAME_ESCAPES = 'ntrbf\\"'  # as in JSON
_OTHER_ESCAPES = {"'": "'", "/": "/", "\n": "", "a": "\\u0007", "v": "\\u000b"}
_CODES = {"x": 2, "u": 4, "U": 8}  # digits
_NUMBER = re.compile(r"([+-]?)((?:0|[1-9][0-9_]*)?)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(r"-?(?:(?:0(?=\.)|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?")
_ANYTHING = ValueType()


@dataclass(slots=True)
class _Container:
    is_object: bool
    num_items: int = 0


class LiteralReadingParser(ParameterReadingParser):
    """This parser reads named literals. A string may hold its own quote unescaped: it ends where a value can end."""

    def __init__(self, tools: Sequence[FunctionTool], *, raw_quotes: tuple[str, ...] = ()) -> None:
        """`raw_quotes` stand around strings without escapes."""
        super().__init__(tools)
        self._raw_quotes = raw_quotes

    def read_named(self, sign: str, end: str) -> Reading[None]:
        """Reads on in an open call: names, each with a sign and a literal after it, to the end of the call.

        What can be no argument ends it too, and is content.
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
        """Passes a name and the sign after it."""
        key = yield from self.pass_until(sign, *"(){}[],\n")
        if key is None or (yield from self.passes(sign)) is None:
            return None
        key = key.strip(WHITESPACE)
        for quote in (*self._raw_quotes, '"', "'"):
            key = key.removeprefix(quote).removesuffix(quote)
        return key or None

    def read_object(self) -> Reading[bool]:
        """Reads all arguments of an open call, that stand in one literal; False when the text ends in it, or breaks."""
        return (yield from self._read_whole(_ANYTHING))

    def _read_whole(self, value_type: ValueType) -> Reading[bool]:
        is_whole = yield from self._read_literal(value_type)
        if is_whole:
            self.commit()
        elif self._is_cut and _is_name(self._text):
            self.drop_rest()
        return is_whole

    def _read_literal(self, value_type: ValueType) -> Reading[bool]:
        """Gives one value as JSON; False when the text ends in it, or goes on with what is none."""
        containers: list[_Container] = []
        while True:
            yield from self.pass_whitespace()
            self.commit()
            char = yield from self.peek()
            if not char:
                return False
            if containers and char in _CLOSERS:  # also after a last comma
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
        """Passes the ends of containers after a value, up to the last or a comma; False if something else follows."""
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
        if (
            quote is None
            and self._is_cut
            and any(mark.startswith(rest) for mark in self._raw_quotes)
        ):
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
        """Whether the quote just passed is the last; None when that was cut off."""
        yield from self.pass_whitespace()
        char = yield from self.peek()
        if not char and self._is_cut:
            self.drop_rest()
            return None
        self.rewind()
        return not char or char in _AFTER_STRING

    def _read_escape(self) -> Reading[None]:
        """Reads what follows a backslash; an unknown escape stays as it is, as in Python."""
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
        size, allowed = (
            (_CODES[char], string.hexdigits) if char in _CODES else (3, string.octdigits)
        )
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
    """Writes a character of a JSON string; half of a surrogate pair may meet its other half."""
    if 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return in_json_string(chr(code)) if code <= 0x10FFFF else "\\ufffd"


def _scalar(text: str, value_type: ValueType) -> str:
    """Writes a word or a number as JSON, its digits as they are, and as a string what is neither.

    Where a value is missing none is made up: the arguments show the gap, as no JSON.
    """
    constant = _CONSTANTS.get(text)
    if constant is not None and (constant == "null" or not value_type.is_text):
        return constant
    number = None if value_type.is_text else _NUMBER.fullmatch(text)
    if number and (number[2] or number[3]):
        fraction = "" if number[3] is None else "." + (number[3] or "0")
        return (
            number[1].strip("+")
            + (number[2].replace("_", "") or "0")
            + fraction
            + (number[4] or "")
        )
    return json_string(text) if text else ""


def _scalar_start(text: str, value_type: ValueType) -> str:
    """Writes what there is of one that was cut off, unless it may still have become something else."""
    if value_type.is_text:
        return ""
    return text if _NUMBER_START.fullmatch(text) else ""


def _is_name(text: str) -> bool:
    """Whether a name of an argument may begin so; nothing at all may."""
    return not set(text) & set("(){}[]\n")
