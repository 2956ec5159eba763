"""JSON values are read from a text that comes in pieces, and calls that are written as JSON objects."""

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
# of values read ahead: marks inside each other must not cost the square of their number
_MAX_HELD_DEPTH = 64


class JsonScan:
    """Finds the end of one value. Balanced brackets and closed strings are all it looks at."""

    def __init__(self, max_depth: int = sys.maxsize) -> None:
        self.is_complete = False
        self.is_too_deep = False
        self._max_depth = max_depth
        self._is_scalar: bool | None = None  # before the first character
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def scan(self, text: str, at: int) -> int:
        """Goes on at `at`; returns where what belongs to the value ends."""
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
        """Whether the value is complete when nothing more comes."""
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
    """This `ReadingParser` reads formats with JSON in them."""

    name_keys: Collection[str] = NAME_KEYS
    arguments_keys: Collection[str] = ARGUMENTS_KEYS

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__()
        self._names = frozenset(tool.name for tool in tools)

    def pass_value(self) -> Reading[str | None]:
        """Passes one value and returns its text; None when it is cut off, too deep, or none begins here."""
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
        """Gives one value while it comes, complete or cut off."""
        scan = JsonScan()
        while True:
            end = scan.scan(self._text, self._at)
            give(self._text[self._at : end])
            self._at = end
            self.commit()
            if scan.is_complete or not (yield from self.more()):
                return

    def pass_string(self) -> Reading[str | None]:
        """Passes one string and returns what it stands for."""
        if (yield from self.peek()) != '"':
            return None
        text = yield from self.pass_value()
        return None if text is None else decoded_string(text)

    def read_marked_calls(self, starts: Sequence[str], ends: Sequence[str]) -> Reading[None]:
        """Reads to the end: content, and calls between marks. An end mark may be missing."""

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
        """Reads one call `{"name": ..., "arguments": ...}` or a list of them; False, and nothing passed, without any.

        `known`: where no mark says that calls follow, the only names that make an object one. Another answer is not
        held back for long then: an object with a key that calls do not have is none.
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
        """Reads one call; its arguments are given while they come, as soon as its name is known.

        False when the object is none: then nothing is committed. One that is cut off after its name is a call.
        """
        if (yield from self.passes("{")) is None:
            return False
        call = _Call()
        while (yield from self._read_member(call, known)) and (yield from self.passes(",")):
            pass
        is_closed = (yield from self.passes("}")) is not None
        is_cut = (yield from self.peek()) == ""
        if not call.is_open:
            if (
                not call.name
                or not (is_closed or is_cut)
                or (known is not None and call.arguments is None)
            ):
                return False
            if call.arguments is not None and not is_arguments(call.arguments):
                return False
            self.open_call(call.name)
            self.arguments(arguments_text(call.arguments) if is_closed or call.arguments else "")
        self.commit()
        return True

    def _read_member(self, call: "_Call", known: Collection[str] | None) -> Reading[bool]:
        """Reads one member of a call's object and the blanks around it; False when it is none."""
        key = yield from self._pass_key()
        if key is None:
            return False
        if (
            known is not None
            and not call.is_open
            and key not in (*self.name_keys, *self.arguments_keys, "type", "id")
        ):
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
        """Passes a member's name, its colon and the blanks around both; None when there is no member."""
        yield from self.pass_whitespace()
        key = yield from self.pass_string()
        yield from self.pass_whitespace()
        if key is None or (yield from self.passes(":")) is None:
            return None
        yield from self.pass_whitespace()
        return key

    def _read_value(self, key: str, call: "_Call", known: Collection[str] | None) -> Reading[bool]:
        """Reads a member's value as a whole; False when it does not end, or is a name that makes no call."""
        start = self._at
        value = yield from self.pass_value()
        if value is None:
            if self._at > start:
                call.name = ""  # cut within the value: what there is of it would be lost
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
        """Reads the arguments of a call whose name was passed; None at all, before one of the marks or the end, are {}.

        False, and nothing committed, when something else follows.
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
        """Passes blanks, and brackets that close what was never open."""
        while (char := (yield from self.peek())) and char in WHITESPACE + "}]":
            self._at += 1


class _Call:
    """A call while its object is being read, as far as it is known."""

    def __init__(self) -> None:
        self.name: str | None = None  # "" when it is none that makes a call
        self.arguments: str | None = None  # that came before the name, or are no object
        self.is_open = False


def is_arguments(value: str) -> bool:
    return (
        value.startswith("{")
        or value == "null"
        or (decoded_string(value) or "").lstrip(WHITESPACE).startswith("{")
    )


def arguments_text(value: str | None) -> str:
    """Returns the arguments: {} where a call has none, and what a string stands for where they are in one."""
    if value is None or value == "null":
        return "{}"
    return value if value.startswith("{") else decoded_string(value) or "{}"
