"""Turns parameters, written one by one with bare values, into a JSON object."""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.parsers.reading_parser import WHITESPACE, Give, Reading, ReadingParser
from ouzel.parsers.typed_values import (
    ValueType,
    in_json_string,
    json_start,
    json_string,
    json_text,
    json_type,
    parameter_type,
)
from ouzel.types.tools import FunctionTool, ParameterMarks

_CDATA, _CDATA_END = "<![CDATA[", "]]>"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMarks:
    """Describes the marks around and after the parameters of a call.

    Nothing is escaped, so a string may contain its own end mark: it ends where another mark follows
    the end mark.
    """

    parameter: ParameterMarks
    call_ends: tuple[str, ...]
    others: tuple[str, ...] = ()  # marks that may follow if the end of a call is missing
    has_cdata: bool = False

    @property
    def after_value(self) -> tuple[str, ...]:
        return (self.parameter.begin, *self.call_ends, *self.others)


class ParameterReadingParser(ReadingParser):
    """Writes the JSON of the arguments itself."""

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        super().__init__()
        self._tools = {tool.name: tool for tool in tools}
        self._tool: FunctionTool | None = None  # the tool of the open call
        self._num_parameters = 0

    def open_call(self, name: str, call_id: str | None = None) -> None:
        super().open_call(name, call_id)
        self._tool, self._num_parameters = self._tools.get(name), 0

    def begin_parameter(self, key: str) -> ValueType:
        self.arguments(("{" if self._num_parameters == 0 else ", ") + json_string(key) + ": ")
        self._num_parameters += 1
        return parameter_type(self._tool, key)

    def close_call(self) -> None:
        self.arguments("}" if self._num_parameters else "{}")

    def read_parameters(self, marks: CallMarks) -> Reading[None]:
        """Reads the parameters of an open call. Text that cannot be a parameter ends the call and
        is content.
        """
        self.commit()
        while True:
            yield from self.pass_whitespace()
            mark = yield from self.passes(marks.parameter.begin, *marks.call_ends)
            key = (yield from self._pass_key(marks)) if mark == marks.parameter.begin else None
            if key is None:
                break
            value_type = self.begin_parameter(key)
            self.commit()
            if not (yield from self._read_value(value_type, marks)):
                return
        if mark not in marks.call_ends:
            if self._is_cut and self._is_start_of_mark(marks):
                self.drop_rest()
                return
            self.rewind()
        self.close_call()
        self.commit()

    def pass_end(self, *marks: str) -> Reading[None]:
        """Consumes the mark that ends all calls, and the blanks before it, if it comes next."""
        yield from self.pass_whitespace()
        if (yield from self.passes(*marks)):
            self.commit()
        elif self._is_cut and any(mark.startswith(self._text[self._at :]) for mark in marks):
            self.drop_rest()
        self.rewind()

    def _pass_key(self, marks: CallMarks) -> Reading[str | None]:
        key = yield from self.pass_until(marks.parameter.name_end, "<", "\n")
        if not key or (yield from self.passes(marks.parameter.name_end)) is None:
            return None
        if marks.parameter.value_begin:
            yield from self.pass_whitespace()
            if (yield from self.passes(marks.parameter.value_begin)) is None:
                return None
        return key

    def _is_start_of_mark(self, marks: CallMarks) -> bool:
        rest = self._text.lstrip(WHITESPACE)
        return rest.startswith(marks.parameter.begin) or any(
            mark.startswith(rest) for mark in marks.after_value
        )

    def _read_value(self, value_type: ValueType, marks: CallMarks) -> Reading[bool]:
        """Reads a value and its end mark; False if the text ends before."""
        if marks.has_cdata and (yield from self.passes(_CDATA)):
            self.commit()
            is_whole = yield from self.read_bare_value(
                value_type, _CDATA_END, (marks.parameter.end,)
            )
            if is_whole and (yield from self.passes(marks.parameter.end)):
                self.commit()
            return is_whole
        if marks.has_cdata and self._is_cut and _CDATA.startswith(self._text):
            self.drop_rest()
            return False
        following, has_newlines = marks.after_value, marks.parameter.has_newlines
        return (
            yield from self.read_bare_value(
                value_type, marks.parameter.end, following, has_newlines=has_newlines
            )
        )

    def read_bare_value(
        self,
        value_type: ValueType,
        end: str,
        following: Sequence[str],
        *,
        has_newlines: bool = False,
    ) -> Reading[bool]:
        """Reads a value and its end mark, after which one of `following` must come; False if the
        text ends before.
        """
        value, mark = _BareValue(value_type, self.arguments, has_newlines=has_newlines), None
        while mark := (yield from self.give_until(value.add, end, keeps_cut=False)):
            is_end = value.is_whole or (yield from self._goes_on(following))
            if is_end:
                value.end()
                return True
            if is_end is None:
                break
            value.add(end)
        if self._is_cut:
            value.cut(has_end=mark is not None)
            self.drop_rest()
        else:
            value.stop()
        return False

    def _goes_on(self, following: Sequence[str]) -> Reading[bool | None]:
        """Tells whether one of `following` or the end of the text comes next; None if the text is
        cut off there.
        """
        yield from self.pass_whitespace()
        mark = yield from self.passes(*following)
        rest = self._text[self._at :]
        self.rewind()
        if mark is None and self._is_cut and any(mark.startswith(rest) for mark in following):
            return None
        return mark is not None or not rest


class _BareValue:
    """Forwards one value while it arrives: a string in pieces, any other value when it is
    complete.
    """

    def __init__(self, value_type: ValueType, give: Give, *, has_newlines: bool) -> None:
        self._value_type = value_type
        self._give = give
        self._newline = "\n" if has_newlines else ""
        self._held = ""
        self._has_begun = False
        self._is_text = False

    def add(self, text: str) -> None:
        if not self._has_begun and text:
            self._has_begun = True
            text = text.removeprefix(self._newline)
        self._held += text
        if self._is_text or self._value_type.is_text_from(self._held):
            text = self._held.removesuffix(self._newline)
            self._held = self._held[len(text) :]
            self._give_text(text)

    @property
    def is_whole(self) -> bool:
        """Tells whether the value is complete JSON and need not be a string."""
        if self._is_text or self._value_type.is_text:
            return False
        return json_type(self._held) is not None

    def end(self) -> None:
        text = self._held.removesuffix(self._newline)
        if self._is_text or self._value_type.is_text:
            self._give_text(text)
            self._give('"')
        else:
            self._give(json_text(text, self._value_type))

    def stop(self) -> None:
        """Ends a value without an end mark."""
        if not self._is_text and self._held:
            self._give(json_text(self._held, self._value_type))

    def cut(self, *, has_end: bool) -> None:
        """Ends a value that was cut off, inside it or right behind its end mark."""
        if not self._is_text:
            held = self._held.removesuffix(self._newline)
            text = json_text(held, self._value_type).removesuffix('"') if has_end else ""
            self._give(json_start(self._held, self._value_type) or text)

    def _give_text(self, text: str) -> None:
        self._give(("" if self._is_text else '"') + in_json_string(text))
        self._is_text = True
