"""Turns calls of custom tools into plain text.

A custom tool's call is a text for the client, but the model writes it as the only argument of a
function: `{"input": "…"}`. The string is decoded while it arrives. Arguments of another form are
returned as they were written, and so is text behind the string.
"""

import enum
from collections.abc import Collection

from ouzel.parsers.base import Delta, Parser, ToolCallDelta
from ouzel.parsers.json_string import StringDecoding
from ouzel.parsers.reading_parser import WHITESPACE
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import CUSTOM_ARGUMENT

_OPENING = f'{{"{CUSTOM_ARGUMENT}":"'
# No blank is allowed before the characters in these places of the opening.
_KEY = range(len('{"'), len('{"') + len(CUSTOM_ARGUMENT) + 1)


class CustomCallsParser:
    """Wraps another parser."""

    def __init__(self, parser: Parser, names: Collection[str]) -> None:
        """`names` are the names of the custom tools."""
        self._parser = parser
        self._names = names
        self._index = 0  # index of the open call
        self._text: _CallText | None = None

    def feed(self, text: str) -> list[Delta]:
        return [shown for delta in self._parser.feed(text) for shown in self._shown(delta)]

    def finish(self, reason: FinishReason) -> list[Delta]:
        deltas = [shown for delta in self._parser.finish(reason) for shown in self._shown(delta)]
        return deltas + self._end_call(is_cut=reason is FinishReason.LENGTH)

    def _shown(self, delta: Delta) -> list[Delta]:
        is_new = isinstance(delta, ToolCallDelta) and delta.name is not None
        ended = self._end_call() if is_new or not isinstance(delta, ToolCallDelta) else []
        if isinstance(delta, ToolCallDelta) and delta.name in self._names:
            self._index, self._text = delta.index, _CallText()
        if not isinstance(delta, ToolCallDelta) or self._text is None:
            return [*ended, delta]
        text = self._text.feed(delta.arguments)
        if is_new or text:
            ended.append(ToolCallDelta(delta.index, delta.id, delta.name, text, is_custom=True))
        return ended

    def _end_call(self, *, is_cut: bool = False) -> list[Delta]:
        rest = "" if self._text is None else self._text.finish(is_cut=is_cut)
        self._text = None
        return [ToolCallDelta(self._index, arguments=rest, is_custom=True)] if rest else []


class _Stage(enum.Enum):
    BEFORE = enum.auto()
    INSIDE = enum.auto()
    AFTER = enum.auto()
    RAW = enum.auto()


class _CallText:
    """Decodes the arguments of one call into its text."""

    def __init__(self) -> None:
        self._stage = _Stage.BEFORE
        self._held = ""
        self._given: list[str] = []
        self._decoding = StringDecoding(self._given.append)
        self._decoding.feed('"')

    def feed(self, arguments: str) -> str:
        self._held += arguments
        if self._stage is _Stage.BEFORE:
            self._pass_opening()
        if self._stage is _Stage.INSIDE:
            self._pass_string()
        if self._stage is _Stage.AFTER and self._held[1:].strip(WHITESPACE) not in ("", "}"):
            self._stage = _Stage.RAW
        if self._stage is _Stage.RAW:
            self._given.append(self._held)
            self._held = ""
        text = "".join(self._given)
        self._given.clear()
        return text

    def finish(self, *, is_cut: bool) -> str:
        """Returns the text that is still held back and is part of the input of the call.

        "" if the output was cut, or the arguments are empty, or the text was no more than syntax.
        """
        is_empty = self._stage is not _Stage.BEFORE or _without_blanks(self._held) in ("", "{}")
        return "" if is_empty or is_cut else self._held

    def _pass_opening(self) -> None:
        num_passed = 0
        for at, char in enumerate(self._held):
            if char in WHITESPACE and num_passed not in _KEY:
                continue
            if char != _OPENING[num_passed]:
                is_empty = _without_blanks(self._held) == "{}"
                self._stage = _Stage.BEFORE if is_empty else _Stage.RAW
                return
            num_passed += 1
            if num_passed == len(_OPENING):
                self._stage, self._held = _Stage.INSIDE, self._held[at + 1 :]
                return

    def _pass_string(self) -> None:
        end = _find_string_end(self._held)
        self._decoding.feed(self._held[:end])
        is_ended = self._held[end:].startswith('"')
        self._held = self._held[end:]
        if is_ended:
            self._decoding.end()
            self._stage = _Stage.AFTER


def _find_string_end(text: str) -> int:
    """Returns the place of the first unescaped quote, or of a backslash that ends the text, or the
    text's length.
    """
    at = 0
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 == len(text):
            return at
        at += 2 if text[at] == "\\" else 1
    return at


def _without_blanks(text: str) -> str:
    return "".join(text.split())
