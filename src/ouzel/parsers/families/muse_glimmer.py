"""Muse Glimmer writes messages to recipients. Its calls are XML-like tags with bare values (ATEM).

 to=self<|message|>The user asks...<|eom|><|start|>assistant to=get_weather<|message|>
<atem:function_calls>
<atem:invoke name="get_weather">
<atem:parameter name="city">Paris</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>

The recipient `self` gets reasoning; messages to others are content, apart from calls in them.
Messages of the same kind are separated by a blank line. The prompt ends with the beginning of a
header, `<|start|>assistant`.
"""

import re
from collections.abc import Sequence

from ouzel.parsers.base import Calls, Family, Format, Parser, Reasoning, ReasoningStage
from ouzel.parsers.parameter_reading_parser import CallMarks, ParameterReadingParser
from ouzel.parsers.reading_parser import Reading
from ouzel.parsers.schemas import call_tag
from ouzel.types.tools import FunctionTool, ParameterMarks

_START, _MESSAGE, _NEXT, _TO = "<|start|>", "<|message|>", "<|eom|>", "to="
_ENDS = (_NEXT, "<|eot|>")
_BOUNDARY = re.compile("|".join(map(re.escape, (_START, *_ENDS))))
_HEADER = re.compile(r"\s*(?:assistant)?\s*(?:to=(?P<to>[^\s<|]+))?\s*")
_START_OF_HEADER = re.compile(r"[\w.=<|> /-]{0,200}")
_BLOCK, _BLOCK_END = "<atem:function_calls>", "</atem:function_calls>"
_CALL, _CALL_END = '<atem:invoke name="', "</atem:invoke>"
ATEM_XML = ParameterMarks(
    style="atem_xml", begin='<atem:parameter name="', name_end='">', end="</atem:parameter>"
)
_MARKS = CallMarks(
    parameter=ATEM_XML, call_ends=(_CALL_END,), others=(_BLOCK_END, _CALL, _BLOCK, _START, *_ENDS)
)


class MuseGlimmerParser(ParameterReadingParser):
    def __init__(self, tools: Sequence[FunctionTool], prompt_text: str) -> None:
        """Starts at the end of `prompt_text`: a continued answer may be inside a message."""
        super().__init__(tools)
        self._recipient = _open_recipient(prompt_text)
        self._kinds: set[str] = set()  # kinds of the texts so far
        self._breaks = {"content": "", "reasoning": ""}  # stand before the next text of the kind

    def content(self, text: str) -> None:
        super().content(self._with_break("content", text))

    def reasoning(self, text: str) -> None:
        super().reasoning(self._with_break("reasoning", text))

    def read(self) -> Reading[None]:
        if self._recipient is not None:
            yield from self._read_message(self._recipient)
        else:
            yield from self._read_first_header()
        yield from self.read_marked([_START], self._read_headed)

    def _read_first_header(self) -> Reading[None]:
        """Reads the rest of a header that the prompt begins, and its message; else a message
        without a header.
        """
        yield from self.pass_whitespace()
        mark = yield from self.passes(_TO, _MESSAGE)
        if mark is None and self._is_cut and _TO.startswith(self._text[self._at :]):
            self.drop_rest()
            return
        self.rewind()
        if mark is None or not (yield from self._read_headed("")):
            self.rewind()
            yield from self._read_message("user")

    def _read_headed(self, _: str) -> Reading[bool]:
        """Reads the header after `<|start|>`, and its message; False for an invalid header.

        A call that a grammar forces follows the role at once, without a recipient.
        """
        header = yield from self.pass_until(_MESSAGE, _BLOCK, _START, *_ENDS, "\n")
        if header is None and self._is_cut and _START_OF_HEADER.fullmatch(self._text[self._at :]):
            self.drop_rest()
            return True
        if header is None or (mark := (yield from self.passes(_MESSAGE, _BLOCK))) is None:
            return False
        parts = _HEADER.fullmatch(header)
        if parts is None or (mark == _BLOCK and parts["to"]):
            return False
        self.commit()
        if mark == _BLOCK:
            self.unread(_BLOCK)
        yield from self._read_message(parts["to"] or "user")
        return True

    def _read_message(self, recipient: str) -> Reading[None]:
        kind = "reasoning" if recipient == "self" else "content"
        if kind in self._kinds:
            self._breaks[kind] = "\n\n"
        if kind == "content" and self._tools:
            yield from self._read_calls()
            return
        give = self.reasoning if kind == "reasoning" else self.content
        if (yield from self.give_until(give, *_ENDS, _START)) == _START:
            self.unread(_START)

    def _read_calls(self) -> Reading[None]:
        """Reads a message: content, and calls in blocks or without."""
        is_first, is_inside = True, False
        while True:
            block_end = (_BLOCK_END,) if is_inside else ()
            marks = (_BLOCK, _CALL, *block_end, *_ENDS, _START)
            mark = yield from self.content_until(*marks, is_first=is_first)
            if mark == _START:
                self.unread(_START)
            if mark is None or mark == _START or mark in _ENDS:
                return
            if mark == _BLOCK_END:
                is_inside = False
                continue
            yield from self.pass_whitespace()
            is_call = mark == _CALL or (yield from self.passes(_CALL)) is not None
            is_first = not (is_call and (yield from self._read_call()))
            if is_first:
                self.keep_as_text(mark)
            is_inside = is_inside or not is_first

    def _read_call(self) -> Reading[bool]:
        name = yield from self.pass_name()
        if not name or (yield from self.passes('">')) is None:
            return False
        space, _, own = name.partition(".")
        is_doubled = name not in self._tools and space == own and own in self._tools
        self.open_call(own if is_doubled else name)
        yield from self.read_parameters(_MARKS)
        return True

    def _with_break(self, kind: str, text: str) -> str:
        if text:
            text, self._breaks[kind] = self._breaks[kind] + text, ""
            self._kinds.add(kind)
        return text


def _open_recipient(prompt_text: str) -> str | None:
    """Returns the recipient of the message in which the prompt ends; None if it ends between
    messages.
    """
    *_, last = _BOUNDARY.split(prompt_text)
    header, mark, _ = last.partition(_MESSAGE)
    parts = _HEADER.fullmatch(header) if mark else None
    return None if parts is None else parts["to"] or "user"


def _stage_after(prompt_text: str) -> ReasoningStage:
    recipient = _open_recipient(prompt_text)
    if recipient is None:
        return ReasoningStage.BEFORE
    return ReasoningStage.OPEN if recipient == "self" else ReasoningStage.OVER


def _make_parser(tools: Sequence[FunctionTool]) -> Parser:
    return MuseGlimmerParser(tools, "")


def _call_format(tool: FunctionTool) -> Format:
    return call_tag(
        tool,
        f'{_BLOCK}\n{_CALL}{tool.name}">\n',
        f"{_CALL_END}\n{_BLOCK_END}",
        marks=ATEM_XML,
    )


_SPECIAL_TOKENS = frozenset({_START, _MESSAGE, *_ENDS})

MUSE_GLIMMER = Family(
    names=("muse_glimmer", "onyx", "muse"),
    matches=lambda template: _BLOCK in template and _NEXT in template,
    interleaved=MuseGlimmerParser,
    calls=Calls(
        make_parser=_make_parser,
        trigger=_BLOCK,
        call_format=_call_format,
        separator="\n",
        special_tokens=_SPECIAL_TOKENS,
    ),
    reasoning=Reasoning(
        start=f" to=self{_MESSAGE}",
        end=f"{_NEXT}{_START}assistant",
        special_tokens=_SPECIAL_TOKENS,
        answer_start=f" to=user{_MESSAGE}",
        own_stage=_stage_after,
    ),
)
