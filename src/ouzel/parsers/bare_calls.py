"""Reads an answer that consists of calls without the family's marks: JSON objects, or an array of
them, bare or in a fence.

{"name": "get_weather", "arguments": {"city": "Paris"}}

```json
{"name": "get_weather", "arguments": {"city": "Paris"}}
```

Rules
1. The answer is the content after the reasoning. Apart from the JSON it has only blanks; the
   fence may stay open.
2. An object is a call if it names one of the request's tools and its arguments obey the tool's
   schema as far as `argument_check.py` can tell. If the tool's arguments must obey, the check must
   know every keyword.
3. While the answer may still become a call, its text is held back. The first character that
   rules a call out (a letter of prose, a member that calls do not have, the name of no tool)
   releases it as content.
4. A fence that contains only calls which the wrapped parser has read belongs to these calls and
   is not content.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from ouzel.parsers.argument_check import ArgumentCheck
from ouzel.parsers.base import ContentDelta, Delta, Parser, ToolCallDelta
from ouzel.parsers.json_reading_parser import (
    ARGUMENTS_KEYS,
    NAME_KEYS,
    JsonReadingParser,
    arguments_text,
    is_arguments,
)
from ouzel.parsers.reading_parser import WHITESPACE, Reading
from ouzel.parsers.schemas import own_schema
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool

_FENCE = "```"
_LANGUAGES = ("json", "JSON")
_OPEN_FENCE = re.compile(rf"\s*{_FENCE}({'|'.join(_LANGUAGES)})?\s*")
_TYPE, _ID = "type", "id"  # members that some models write beside name and arguments
_BEGINNINGS_OF_ARGUMENTS = ("{", '"{', "null")


class BareCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings for reading a whole answer as calls."""

    tools: tuple[FunctionTool, ...]
    is_parallel: bool  # an answer may have several calls
    guides_all: bool  # the arguments of all tools must obey their schemas


class BareCallsParser:
    """Wraps another parser and looks for bare calls in its content."""

    def __init__(self, parser: Parser, calls: BareCalls, make_call_id: Callable[[], str]) -> None:
        self._parser = parser
        self._calls = calls
        self._make_call_id = make_call_id
        # None once the answer is known to have no bare calls
        self._answer: _Answer | None = _Answer(calls, make_call_id)
        # the opening of a fence around calls of the wrapped parser
        self._fence: str | None = None
        # content after these calls, held back while it may be the closing of the fence
        self._after_calls = ""

    def feed(self, text: str) -> list[Delta]:
        return self._read(self._parser.feed(text))

    def finish(self, reason: FinishReason) -> list[Delta]:
        deltas = self._read(self._parser.finish(reason))
        if self._answer is not None:
            return deltas + self._answer.finish(reason)
        if self._fence is not None and self._after_calls.strip(WHITESPACE) not in ("", _FENCE):
            return deltas + self._give_fence()
        return deltas

    def _read(self, deltas: list[Delta]) -> list[Delta]:
        if self._answer is None and self._fence is None:
            return deltas
        return [shown for delta in deltas for shown in self._shown(delta)]

    def _shown(self, delta: Delta) -> list[Delta]:
        if self._answer is None:
            return self._shown_in_fence(delta)
        if isinstance(delta, ContentDelta):
            deltas = self._answer.feed(delta.text)
            if self._answer.is_other:
                self._answer = None
            return deltas
        held = self._answer.text
        is_begun = held.strip(WHITESPACE) != "" or isinstance(delta, ToolCallDelta)
        self._answer = None if is_begun else _Answer(self._calls, self._make_call_id)
        if isinstance(delta, ToolCallDelta) and _OPEN_FENCE.fullmatch(held):
            self._fence = held
            return [delta]
        return [ContentDelta(held), delta] if held else [delta]

    def _shown_in_fence(self, delta: Delta) -> list[Delta]:
        """Holds content back while it may be the closing of the fence."""
        if self._fence is None or isinstance(delta, ToolCallDelta):
            return [delta]
        if not isinstance(delta, ContentDelta):
            return [*self._give_fence(), delta]
        self._after_calls += delta.text
        return [] if _FENCE.startswith(self._after_calls.strip(WHITESPACE)) else self._give_fence()

    def _give_fence(self) -> list[Delta]:
        """Releases the fence as content, because it is not empty apart from the calls."""
        held = (self._fence or "") + self._after_calls
        self._fence = None
        return [ContentDelta(held)]


class _Call(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Answer(JsonReadingParser):
    """Reads one answer: either calls only, or content."""

    def __init__(self, calls: BareCalls, make_call_id: Callable[[], str]) -> None:
        super().__init__(calls.tools)
        self.is_other = False  # the answer has no call; its text is no longer held back
        self._calls = calls
        self._tools = {tool.name: tool for tool in calls.tools}
        self._make_call_id = make_call_id

    @property
    def text(self) -> str:
        """Returns the text that is held back."""
        return self._text

    def read(self) -> Reading[None]:
        calls = yield from self._pass_answer()
        if calls:
            self.commit()
        self.rewind()
        for call in calls:
            assert call.name is not None
            self.open_call(call.name, self._make_call_id())
            self.arguments(arguments_text(call.arguments))
        self.is_other = not calls
        yield from self.give_until(self.content)

    def _pass_answer(self) -> Reading[Sequence[_Call]]:
        """Consumes the whole answer and returns its calls; an empty sequence if it is not calls
        only.
        """
        yield from self.pass_whitespace()
        has_fence = (
            yield from self.passes(_FENCE, *(_FENCE + language for language in _LANGUAGES))
        ) is not None
        yield from self.pass_whitespace()
        calls = yield from self._pass_calls()
        if not calls:
            return ()
        yield from self.pass_whitespace()
        if has_fence and (yield from self.passes(_FENCE)):
            yield from self.pass_whitespace()
        return calls if (yield from self.peek()) == "" else ()

    def _pass_calls(self) -> Reading[Sequence[_Call]]:
        """Consumes an object, a row of objects or an array, and returns the calls.

        Returns an empty sequence as soon as one object is not a call.
        """
        is_array = (yield from self.passes("[")) is not None
        calls: list[_Call] = []
        following: str | None = ","
        while following:
            yield from self.pass_whitespace()
            call = yield from self._pass_call()
            if call is None or (calls and not self._calls.is_parallel):
                return ()
            calls.append(call)
            yield from self.pass_whitespace()
            following = yield from self.passes("," if is_array else "{")
            if following == "{":
                self._at -= 1
        return calls if not is_array or (yield from self.passes("]")) else ()

    def _pass_call(self) -> Reading[_Call | None]:
        """Consumes one object and returns its call; None as soon as the object is not a call."""
        call, keys = _Call(), {*NAME_KEYS, *ARGUMENTS_KEYS, _TYPE, _ID}
        following = yield from self.passes("{")
        while following in ("{", ","):
            key = yield from self._pass_known_key(keys)
            if key is None or not (yield from self._pass_member(key, call)):
                return None
            keys -= set(ARGUMENTS_KEYS) if key in ARGUMENTS_KEYS else {key}
            yield from self.pass_whitespace()
            following = yield from self.passes(",", "}")
        is_call = following == "}" and call.name is not None and call.arguments is not None
        return call if is_call else None

    def _pass_known_key(self, keys: set[str]) -> Reading[str | None]:
        """Passes a member's key, its colon and the blanks around both; None if the key is not in
        `keys`.
        """
        yield from self.pass_whitespace()
        key = yield from self.passes(*(f'"{key}"' for key in keys))
        yield from self.pass_whitespace()
        if key is None or (yield from self.passes(":")) is None:
            return None
        yield from self.pass_whitespace()
        return key.strip('"')

    def _pass_member(self, key: str, call: _Call) -> Reading[bool]:
        """Consumes the value of a member; False if a call cannot have this value."""
        if key == _ID:
            return (yield from self.pass_string()) is not None
        if key == _TYPE:
            return (yield from self.passes('"function"')) is not None
        if key in NAME_KEYS:
            name = yield from self.passes(*(f'"{name}"' for name in self._tools))
            call.name = None if name is None else name.strip('"')
            is_known = name is not None
        else:
            call.arguments = yield from self._pass_arguments()
            is_known = call.arguments is not None
        if not is_known or call.name is None or call.arguments is None:
            return is_known  # the second of name and arguments is still missing
        return _obeys(self._tools[call.name], arguments_text(call.arguments), self._calls)

    def _pass_arguments(self) -> Reading[str | None]:
        """Consumes the arguments and returns their text; None as soon as they are not an object."""
        start = self._at
        if (yield from self.passes(*_BEGINNINGS_OF_ARGUMENTS)) is None:
            return None
        self._at = start
        value = yield from self.pass_value()
        return value if value is not None and is_arguments(value) else None


def _obeys(tool: FunctionTool, arguments: str, calls: BareCalls) -> bool:
    if tool.text_grammar is not None:
        return False  # the tool's text grammar is not checked here
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return False
    check = ArgumentCheck(own_schema(tool), is_strict=tool.strict)
    obeys = isinstance(value, dict) and check.obeys(value)
    return obeys and (check.says_all or not (tool.strict or calls.guides_all))
