"""Parses reasoning between two marks at the beginning of an output, before any other text.

The newlines that templates write inside the marks and behind them belong to the marks. A call's
mark ends the reasoning too, if the model wrote it as a control token; in other tokens, the mark's
text is reasoning.
"""

from ouzel.parsers.base import CONTROL_SIGN, Delta, Parser, Reasoning, ReasoningStage
from ouzel.parsers.reading_parser import Reading, ReadingParser
from ouzel.types.step_output import FinishReason

THINK_TAGS = Reasoning(
    start="<think>", end="</think>", special_tokens=frozenset({"<think>", "</think>"})
)


class ThinkingParser(ReadingParser):
    """Separates the reasoning from the rest, which it passes to the parser `rest`."""

    def __init__(
        self,
        marks: Reasoning,
        rest: Parser,
        prompt_text: str,
        *,
        continues_prompt: bool = False,
        call_mark: str = "",
    ) -> None:
        """`call_mark` ends the reasoning if `CONTROL_SIGN` stands before it."""
        super().__init__()
        self._ended_by = (*marks.ended_by, *((CONTROL_SIGN + call_mark,) if call_mark else ()))
        self._marks = marks
        self._rest = rest
        stage = marks.stage_after(prompt_text, continues_prompt=continues_prompt)
        self._is_open = stage is ReasoningStage.OPEN

    def content(self, text: str) -> None:
        text = text.replace(CONTROL_SIGN, "")
        if text:
            self._deltas += self._rest.feed(text)

    def reasoning(self, text: str) -> None:
        super().reasoning(text.replace(CONTROL_SIGN, ""))

    def finish(self, reason: FinishReason) -> list[Delta]:
        deltas = super().finish(reason)
        return deltas + self._rest.finish(reason)

    def read(self) -> Reading[None]:
        if not self._is_open:
            yield from self.pass_whitespace()
        if self._is_open or (yield from self.passes(self._marks.start, *self._marks.other_starts)):
            self.commit()
            yield from self._read_reasoning()
            if self._marks.answer:
                yield from self._read_answer(*self._marks.answer)
        else:
            self.rewind()
        yield from self.give_until(self.content)

    def _read_reasoning(self) -> Reading[None]:
        newlines = ""  # held back, and dropped at both ends of the reasoning
        has_begun = False

        def give(text: str) -> None:
            nonlocal newlines, has_begun
            text = newlines + text if has_begun else text.lstrip("\n")
            inner = text.rstrip("\n")
            newlines = text[len(inner) :]
            has_begun = has_begun or inner != ""
            self.reasoning(inner)

        marks = self._marks
        mark = yield from self.give_until(give, marks.end, *marks.other_ends, *self._ended_by)
        if mark is not None and mark in self._ended_by:
            self.unread(mark)
        elif mark is not None:
            while (yield from self.peek()) == "\n":
                self._at += 1
            self.commit()

    def _read_answer(self, start: str, end: str) -> Reading[None]:
        if (yield from self.passes(start)):
            self.commit()
            yield from self.give_until(self.content, end)
