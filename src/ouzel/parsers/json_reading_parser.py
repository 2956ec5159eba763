"""Reads JSON values, and calls written as JSON objects, from a text that arrives in pieces."""

import re
import sys
from collections.abc import Collection, Sequence

from ouzel.parsers.json_string import StringDecoding, decoded_string
from ouzel.parsers.reading_parser import WHITESPACE, Give, Reading, ReadingParser
from ouzel.types.tools import FunctionTool

_STRUCTURE = re.compile(r'["{}\[\]]')
_STRING_PART = re.compile(r'["\\]')
_SCALAR_END = re.compile(r"[,:}\]\s;<]")

NAME_KEYS = ("name",)
ARGUMENTS_KEYS = ("arguments", "parameters")
# For values that are held back: marks nested in each other must not cost quadratic time.
_MAX_HELD_DEPTH = 64


class JsonScan:
    """Finds the end of one JSON value. It looks only at brackets and the ends of strings."""

    def __init__(self, max_depth: int = sys.maxsize) -> None:
        self.is_complete = False
        self.is_too_deep = False
        self._max_depth = max_depth
        self._is_scalar: bool | None = None  # None before the first character
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def scan(self, text: str, at: int) -> int:
        """Continues at `at` and returns the place behind the value's characters in `text`."""
        while at < len(text) and not (self.is_complete or self.is_too_deep):
            if self._is_scalar is None:
                self._is_scalar = text[at] not in '"{['
            if self._is_scalar:
                end = _SCALAR_END.search(text, at)
                self.is_complete = end is not None
                return end.start() if end else len(text)
            at = self._scan_string(text, at) if self._in_string else self._scan_structure(text, at)
        return at

    def end(self) -> bool:
        """Tells whether the value is complete if no more text comes."""
        return self.is_complete or self._is_scalar is True

    def _scan_string(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return at + 1
        part = _STRING_PART.search(text, at)
        if part is None:
            return len(text)
        if part[0] == "\\":
            self._is_escaped = True
        else:
            self._in_string = False
            self.is_complete = self._depth == 0
        return part.end()

    def _scan_structure(self, text: str, at: int) -> int:
        part = _STRUCTURE.search(text, at)
        if part is None:
            return len(text)
        if part[0] == '"':
            self._in_string = True
        else:
            self._depth += 1 if part[0] in "{[" else -1
            self.is_complete = self._depth == 0
            self.is_too_deep = self._depth > self._max_depth
        return part.end()


class JsonReadingParser(ReadingParser):
    """Reads formats that contain JSON."""

    name_keys: Collection[str] = NAME_KEYS
    arguments_keys: Collection[str] = ARGUMENTS_KEYS

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__()
        self._names = frozenset(tool.name for tool in tools)

    def pass_value(self) -> Reading[str | None]:
        """Consumes one value and returns its text; None if it is cut off or too deep, or there is
        none.
        """
        scan, start = JsonScan(_MAX_HELD_DEPTH), self._at
        if (yield from self.peek()) in ("", *",:}]"):
            return None
        while True:
            self._at = scan.scan(self._text, self._at)
            if scan.is_complete:
                return self._text[start : self._at]
            if scan.is_too_deep:
                return None
            if not (yield from self.more()):
                return self._text[start : self._at] if scan.end() else None

    def give_value(self, give: Give) -> Reading[None]:
        """Forwards one value to `give` while it arrives, complete or cut off."""
        scan = JsonScan()
        while True:
            end = scan.scan(self._text, self._at)
            give(self._text[self._at : end])
            self._at = end
            self.commit()
            if scan.is_complete or not (yield from self.more()):
                return

    def pass_string(self) -> Reading[str | None]:
        """Consumes one string and returns its decoded text."""
        if (yield from self.peek()) != '"':
            return None
        text = yield from self.pass_value()
        return None if text is None else decoded_string(text)

    def read_marked_calls(self, starts: Sequence[str], ends: Sequence[str]) -> Reading[None]:
        """Reads content and calls between marks to the end. An end mark may be missing."""

        def read_on(start: str) -> Reading[bool]:
            yield from self.pass_whitespace()
            if not (yield from self.read_calls()):
                return False
            yield from self.pass_closers()
            if (yield from self.passes_end(*ends)):
                self.commit()
            self.rewind()
            return True

        yield from self.read_marked(starts, read_on)

    def read_calls(self, *, known: Collection[str] | None = None) -> Reading[bool]:
        """Reads one call `{"name": ..., "arguments": ...}` or a list of calls.

        Returns False, and passes nothing, if there is no call. `known` is set where no mark
        announces calls: only these names make an object a call. A key that calls do not have ends
        the reading at once, so that other JSON answers are not held back for long.
        """
        if (yield from self.peek()) != "[":
            return (yield from self.read_call(known=known))
        self._at += 1
        num_calls = 0
        while True:
            yield from self.pass_whitespace()
            start = self._at
            if not (yield from self.read_call(known=known)):
                self._at = start
                break
            num_calls += 1
            yield from self.pass_whitespace()
            if (yield from self.passes(",", "]")) != ",":
                break
        if num_calls:
            self.commit()
        return num_calls > 0

    def read_call(self, *, known: Collection[str] | None = None) -> Reading[bool]:
        """Reads one call. Once its name is known, its arguments are passed on while they arrive.

        Returns False, and commits nothing, if the object is not a call. A call may be cut off after
        its name.
        """
        if (yield from self.passes("{")) is None:
            return False
        call = _Call()
        while (yield from self._read_member(call, known)) and (yield from self.passes(",")):
            pass
        is_closed = (yield from self.passes("}")) is not None
        is_cut = (yield from self.peek()) == ""
        if not call.is_open:
            needs_arguments = known is not None and call.arguments is None
            if not call.name or not (is_closed or is_cut) or needs_arguments:
                return False
            if call.arguments is not None and not is_arguments(call.arguments):
                return False
            self.open_call(call.name)
            self.arguments(arguments_text(call.arguments) if is_closed or call.arguments else "")
        self.commit()
        return True

    def _read_member(self, call: "_Call", known: Collection[str] | None) -> Reading[bool]:
        """Reads one member of a call's object and the blanks around it; False if there is no valid
        member.
        """
        key = yield from self._pass_key()
        if key is None:
            return False
        is_key_of_calls = key in (*self.name_keys, *self.arguments_keys, "type", "id")
        if known is not None and not call.is_open and not is_key_of_calls:
            return False
        can_open = not call.is_open and key in self.arguments_keys
        if call.name and can_open and (begin := (yield from self._peek_any("{", '"{'))):
            self.open_call(call.name)
            call.is_open = True
            yield from self.give_value(
                self.arguments if begin == "{" else StringDecoding(self.arguments).feed
            )
        elif not (yield from self._read_value(key, call, known)):
            return False
        yield from self.pass_whitespace()
        return True

    def _pass_key(self) -> Reading[str | None]:
        """Consumes a member's key, its colon and the blanks around both; None if there is no
        member.
        """
        yield from self.pass_whitespace()
        key = yield from self.pass_string()
        yield from self.pass_whitespace()
        if key is None or (yield from self.passes(":")) is None:
            return None
        yield from self.pass_whitespace()
        return key

    def _read_value(self, key: str, call: "_Call", known: Collection[str] | None) -> Reading[bool]:
        """Reads a whole member's value; False if it is incomplete, or a name that is not known."""
        start = self._at
        value = yield from self.pass_value()
        if value is None:
            if self._at > start:
                call.name = ""  # the value is cut; a call without it would lose text
            return False
        if key in self.name_keys and call.name is None:
            name = decoded_string(value) or ""
            call.name = name if known is None or name in known else ""
            return call.name != ""
        if key in self.arguments_keys:
            call.arguments = value
        return True

    def _peek_any(self, *options: str) -> Reading[str | None]:
        start = self._at
        found = yield from self.passes(*options)
        self._at = start
        return found

    def read_arguments(self, name: str, *marks: str, call_id: str | None = None) -> Reading[bool]:
        """Reads the arguments of a call after its name. Missing arguments, before a mark or the
        end, are {}.

        Returns False, and commits nothing, if something else follows.
        """
        yield from self.pass_whitespace()
        following = yield from self.peek()
        if following == "{":
            self.open_call(name, call_id)
            yield from self.give_value(self.arguments)
            return True
        end = self._at
        if following and not (yield from self.passes(*marks)):
            return False
        self._at = end
        self.commit()
        self.open_call(name, call_id)
        self.arguments("" if self._is_cut and not following else "{}")
        return True

    def pass_closers(self) -> Reading[None]:
        """Consumes blanks and surplus closing brackets."""
        while (char := (yield from self.peek())) and char in WHITESPACE + "}]":
            self._at += 1


class _Call:
    """Holds the state of a call while its object is being read."""

    def __init__(self) -> None:
        self.name: str | None = None  # "" if no tool has the name
        self.arguments: str | None = None  # before the name, or no object
        self.is_open = False


def is_arguments(value: str) -> bool:
    return (
        value.startswith("{")
        or value == "null"
        or (decoded_string(value) or "").lstrip(WHITESPACE).startswith("{")
    )


def arguments_text(value: str | None) -> str:
    """Returns the arguments as JSON text: decoded if they are in a string, {} if there are none."""
    if value is None or value == "null":
        return "{}"
    return value if value.startswith("{") else decoded_string(value) or "{}"
