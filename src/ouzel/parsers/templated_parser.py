"""Parses answers in the format of a model's own `response_template`.

Text between the regions is content, whether or not the content field has marks: no text is lost,
except the marks themselves. A call that cannot be read is content, as it was written.
"""

import re
from collections.abc import Callable, Sequence

from ouzel.parsers.base import Calls, Family, Format, Parser, Reasoning, ReasoningStage
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.mark_patterns import Gap, Mark
from ouzel.parsers.reading_parser import Give, Reading, first_marker
from ouzel.parsers.response_template import CallsField, ResponseTemplate, TextField
from ouzel.parsers.schemas import call_tag
from ouzel.parsers.typed_values import json_string
from ouzel.types.tools import FunctionTool

RESPONSE_TEMPLATE = "response_template"
_TOKEN_LIKE = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")


class TemplatedParser(JsonReadingParser):
    def __init__(
        self, template: ResponseTemplate, tools: Sequence[FunctionTool], prompt_text: str
    ) -> None:
        """Text of `prompt_text` after the last anchor belongs to the answer."""
        super().__init__(tools)
        calls = template.calls if tools else None
        if calls and calls.name_key:
            self.name_keys, self.arguments_keys = (calls.name_key,), (calls.arguments_key,)
        self._content = _Text(self.content, template.content)
        self._reasoning = _Text(self.reasoning, template.reasoning or TextField())
        # the text of an opening mark -> the mark and the reader of its region
        self._regions: dict[str, tuple[Mark, Callable[[str], Reading[bool]]]] = {}
        self._add_text(template.content, self._content)
        if template.reasoning:
            self._add_text(template.reasoning, self._reasoning)
        if calls:
            self._add(calls.opens, lambda name: self._read_calls(calls, name))
        self._call_begins = tuple(mark.text for mark in calls.opens) if calls else ()
        self._dropped = tuple(
            {*_texts(template.content.closes), *_stray_marks(template)} - self._regions.keys()
        )
        # characters at the end of the prompt that may be the beginning of a mark
        self._num_written = 0
        self._is_reasoning = False
        self.stage = self._pass_prompt(prompt_text, template.anchors)

    def _add(self, opens: Sequence[Mark], read: Callable[[str], Reading[bool]]) -> None:
        self._regions |= {mark.text: (mark, read) for mark in opens}

    def _add_text(self, field: TextField, text: "_Text") -> None:
        self._add(field.opens, lambda _: self._read_text(field, text))

    def _pass_prompt(self, prompt_text: str, anchors: Sequence[str]) -> ReasoningStage:
        """Reads the beginning of the answer in the prompt. It stops before calls, after which
        reasoning may follow.
        """
        end = max(
            (at + len(anchor) for anchor in anchors if (at := prompt_text.rfind(anchor)) >= 0),
            default=None,
        )
        if end is None:
            return ReasoningStage.BEFORE
        written = prompt_text[end:]
        call = first_marker(written, self._call_begins)
        self.feed(written if call is None else written[: call[0]])
        self._content.forget()
        self._reasoning.forget()
        self._num_written = len(self._text.lstrip())
        if self._is_reasoning:
            return ReasoningStage.OPEN
        return ReasoningStage.OVER if written.strip() and call is None else ReasoningStage.BEFORE

    def content(self, text: str) -> None:
        super().content(self._without_written(text))

    def reasoning(self, text: str) -> None:
        super().reasoning(self._without_written(text))

    def _without_written(self, text: str) -> str:
        num = min(self._num_written, len(text))
        self._num_written -= num
        return text[num:]

    def read(self) -> Reading[None]:
        is_first, marks = True, (*self._regions, *self._dropped)
        while mark := (yield from self.give_until(self._content.give, *marks, keeps_cut=False)):
            if mark in self._regions and not (yield from self._read_region(*self._regions[mark])):
                self.rewind()
                self._content.give(mark)
            else:
                self._content.pause()
                self._num_written, is_first = 0, False
        if is_first or not (self._text and self._content.is_blank):
            self._content.give(self._text)
            self._end_text(self._content)
        self.drop_rest()  # the beginning of the next mark at a cut

    def _read_region(self, mark: Mark, read: Callable[[str], Reading[bool]]) -> Reading[bool]:
        name = yield from self._pass_rest(mark)
        return name is not None and (yield from read(name))

    def _pass_rest(self, mark: Mark) -> Reading[str | None]:
        """Consumes the parts of a mark behind its first text.

        Returns the function's name, "" for a mark without a name, or None if the text differs.
        """
        name = ""
        for at, part in enumerate(mark.rest):
            following = mark.rest[at + 1] if at + 1 < len(mark.rest) else ""
            match part:
                case Gap.SPACE:
                    yield from self.pass_whitespace()
                case Gap.NAME:
                    name = yield from self._pass_function_name()
                    if not name:
                        return None
                case Gap.ANYTHING:
                    assert isinstance(following, str)
                    if (yield from self.pass_until(following)) is None:
                        return None
                case str():
                    if (yield from self.passes(part)) is None:
                        return None
        return name

    def _pass_function_name(self) -> Reading[str]:
        start = self._at
        while (char := (yield from self.peek())).isalnum() or (char and char in "_-"):
            self._at += 1
        return self._text[start : self._at]

    def _read_text(self, field: TextField, text: "_Text") -> Reading[bool]:
        self.commit()
        text.part()
        self._num_written = 0
        self._is_reasoning = text is self._reasoning
        if (yield from self.give_until(text.give, *_texts(field.closes))) is None:
            self._end_text(text)
        self._is_reasoning = False
        self._num_written = 0
        text.part()
        return True

    def _end_text(self, text: "_Text") -> None:
        if self._is_cut:  # the text may continue in another answer
            text.give_held()

    def _read_calls(self, calls: CallsField, name: str) -> Reading[bool]:
        ends = _texts(calls.closes)
        yield from self.pass_whitespace()
        if calls.name_key:
            has_call = yield from self.read_calls()
        else:
            has_call = yield from self.read_arguments(name, *ends)
        if not has_call:
            return False
        yield from self.pass_closers()
        if (yield from self.passes_end(*ends)):
            self.commit()
        self.rewind()
        return True


class _Text:
    """Forwards one kind of text while it arrives; if `strips`, without whitespace at both ends.

    Of the whitespace around a mark inside the text, the part behind the mark is kept, or else the
    part before it.
    """

    def __init__(self, give: Give, field: TextField) -> None:
        self._give = give
        self._strips = field.strips
        self._separator = field.separator
        self._before = ""  # precedes the next text, unless that begins with whitespace
        self._held = ""
        self._has_given = False
        self._is_at_start = True
        self.is_blank = True  # only whitespace since the last mark

    def pause(self) -> None:
        """Records a mark inside the text."""
        self._before, self._held = self._held or self._before, ""
        self.is_blank = True

    def part(self) -> None:
        """Records that a region begins or has ended, so that a separator precedes the next text."""
        self._before, self._held = self._separator if self._has_given else "", ""
        self._is_at_start = True

    def give(self, text: str) -> None:
        if self._strips and self._is_at_start:
            text = text.lstrip()
        if not text:
            return
        text, self._is_at_start = self._held + text, False
        inner = text.rstrip() if self._strips else text
        self._held = text[len(inner) :]
        if inner:
            has_space = self._strips and inner[0].isspace()
            self._give(inner if has_space else self._before + inner)
            self._before, self._has_given, self.is_blank = "", True, False

    def forget(self) -> None:
        """Forgets the whitespace so far, because it belongs to the prompt."""
        self._before = self._held = ""

    def give_held(self) -> None:
        self._give(self._held)


def make_templated_family(template: ResponseTemplate) -> Family:
    """Makes a family from the calls and the reasoning that the template describes."""

    def make_parser(tools: Sequence[FunctionTool], prompt_text: str) -> Parser:
        return TemplatedParser(template, tools, prompt_text)

    tokens = _special_tokens(template)
    reads_all = template.reasoning is not None or template.content.opens != ()
    return Family(
        names=(RESPONSE_TEMPLATE,),
        matches=lambda _: False,  # the response_template decides, not the chat template
        calls=_describe_calls(template, template.calls, tokens) if template.calls else None,
        reasoning=_describe_reasoning(template, template.reasoning, tokens)
        if template.reasoning
        else None,
        interleaved=make_parser if reads_all else None,
    )


def _describe_calls(template: ResponseTemplate, calls: CallsField, tokens: frozenset[str]) -> Calls:
    opening, end = calls.opens[0], calls.closes[0].spelled()

    def call_format(tool: FunctionTool) -> Format:
        if not calls.name_key:
            return call_tag(tool, opening.spelled(tool.name), end)
        keys = map(json_string, (calls.name_key, tool.name, calls.arguments_key))
        begin = "{{{}: {}, {}: ".format(*keys)
        if calls.is_list:
            return call_tag(tool, begin, "}")
        return call_tag(tool, opening.spelled() + begin, "}" + end)

    return Calls(
        make_parser=lambda tools: TemplatedParser(template, tools, ""),
        trigger=opening.text,
        call_format=call_format,
        before=opening.spelled() + "[" if calls.is_list else "",
        separator=", " if calls.is_list else "",
        after="]" + end if calls.is_list else "",
        special_tokens=tokens,
    )


def _describe_reasoning(
    template: ResponseTemplate, field: TextField, tokens: frozenset[str]
) -> Reasoning:
    start, *others = (mark.spelled() for mark in field.opens)
    end, *other_ends = (mark.spelled() for mark in field.closes)
    parts = (part for mark in (*field.opens, *field.closes) for part in mark.rest)
    return Reasoning(
        start=start,
        end=end,
        special_tokens=tokens,
        other_starts=tuple(others),
        other_ends=tuple(other_ends),
        are_exact=all(part is Gap.SPACE for part in parts),
        own_stage=lambda prompt_text: TemplatedParser(template, (), prompt_text).stage,
    )


def _special_tokens(template: ResponseTemplate) -> frozenset[str]:
    """Returns all texts in the marks that may be special tokens."""
    fields = (template.content, template.reasoning, template.calls)
    marks = [mark for field in fields if field for mark in (*field.opens, *field.closes)]
    texts = [text for mark in marks for text in (mark.text, *mark.rest) if isinstance(text, str)]
    texts += template.anchors
    return frozenset(text.strip() for text in texts) | {
        token for text in texts for token in _TOKEN_LIKE.findall(text)
    }


def _stray_marks(template: ResponseTemplate) -> tuple[str, ...]:
    """Returns the marks that are dropped between regions, if the content has its own marks."""
    if not template.content.opens:
        return ()
    closes = template.reasoning.closes if template.reasoning else ()
    return (*template.anchors, *_texts(closes))


def _texts(marks: Sequence[Mark]) -> tuple[str, ...]:
    return tuple(mark.text for mark in marks)
