"""gpt-oss writes Harmony messages, whose header has a channel and perhaps a recipient, in any
order.

<|channel|>analysis<|message|>The user asks...<|end|><|start|>assistant
<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>
<|start|>assistant<|channel|>final<|message|>It rains.<|return|>

The channel `analysis` is reasoning, even with a recipient. The channels `commentary` and `final`
are content, and so is a message to a recipient that is not a function. The recipient may stand
before the channel. Messages of the same kind are separated by a blank line. A call ends the model's
turn.
"""

import re
from collections.abc import Sequence

from ouzel.parsers.base import Calls, Family, Format, Parser, Reasoning, ReasoningStage
from ouzel.parsers.json_reading_parser import JsonReadingParser
from ouzel.parsers.reading_parser import Give, Reading
from ouzel.parsers.schemas import call_tag
from ouzel.types.tools import FunctionTool

_START, _CHANNEL, _MESSAGE, _CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
_BOUNDARY = re.compile("|".join(map(re.escape, (_START, *_ENDS))))
_FUNCTIONS = "functions."
_HEADER = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?(?:\s*to=(?P<to>[^\s<]+))?\s*"
    r"(?:<\|channel\|>\s*(?P<channel>analysis|commentary|final)(?:\s+to=(?P<then_to>[^\s<]+))?)?"
    r"\s*(?:<\|constrain\|>)?\s*(?:json|code|text)?\s*"
)
_WHOLE_RECIPIENT = re.compile(r"to=([^\s<]+)[\s<]")
_START_OF_HEADER = re.compile(r"[\w.=<|> /-]{0,200}")


class HarmonyParser(JsonReadingParser):
    def __init__(self, tools: Sequence[FunctionTool], prompt_text: str) -> None:
        """Starts at the end of `prompt_text`: a continued answer may be inside a message."""
        super().__init__(tools)
        self._kinds: set[str] = set()  # kinds of the messages so far
        self._opened = _open_header(prompt_text)

    def read(self) -> Reading[None]:
        if self._opened is not None:
            yield from self._read_message(self._opened)
        else:
            yield from self.pass_whitespace()
            if (yield from self.passes("to=")) is None or not (yield from self._read_headed("to=")):
                self.rewind()
        yield from self.read_marked([_START, _CHANNEL, _MESSAGE], self._read_headed)

    def _read_headed(self, mark: str) -> Reading[bool]:
        """Reads a message after the first mark of its header; False, with nothing passed, for an
        invalid header.
        """
        header = mark.removesuffix(_MESSAGE)
        if header:
            text = yield from self.pass_until(_MESSAGE, _START, *_ENDS, "\n")
            if text is None and self._is_cut and _START_OF_HEADER.fullmatch(self._text[self._at :]):
                self._open_cut_call(mark + self._text[self._at :])
                self.drop_rest()
                return True
            if text is None or (yield from self.passes(_MESSAGE)) is None:
                return False
            header += text
        message = _HEADER.fullmatch(header)
        if message is None:
            return False
        self.commit()
        yield from self._read_message(message)
        return True

    def _open_cut_call(self, header: str) -> None:
        recipient = _WHOLE_RECIPIENT.search(header)
        if recipient and (name := self._called(recipient[1])):
            self.open_call(name)

    def _called(self, recipient: str) -> str | None:
        """Returns the function's name in a recipient; None if it is not a function, or without
        tools.
        """
        name = recipient.removeprefix(_FUNCTIONS)
        return name if self._names and (name != recipient or name in self._names) else None

    def _read_message(self, header: re.Match[str]) -> Reading[None]:
        name = self._called(header["then_to"] or header["to"] or "")
        if name and (yield from self._read_call(name)):
            return
        if header["channel"] == "analysis":
            give = self._apart("reasoning", self.reasoning)
        else:
            give = self._apart("content", self.content)
        mark = yield from self.give_until(give, *_ENDS, _START, _CHANNEL)
        if mark in (_START, _CHANNEL):
            self.unread(mark)

    def _read_call(self, name: str) -> Reading[bool]:
        yield from self.pass_whitespace()
        following = yield from self.peek()
        if following == "{":
            self.open_call(name)
            yield from self.give_value(self.arguments)
        elif not following or (yield from self.passes(*_ENDS)):
            self.open_call(name)
            self.arguments("" if self._is_cut and not following else "{}")
            self.commit()
            return True
        else:
            self.rewind()
            return False
        yield from self.pass_whitespace()
        if (yield from self.passes(*_ENDS)):
            self.commit()
        elif self._is_cut and any(mark.startswith(self._text[self._at :]) for mark in _ENDS):
            self.drop_rest()
        self.rewind()
        return True

    def _apart(self, kind: str, give: Give) -> Give:
        """Returns a function that passes texts of one message to `give`.

        If an earlier message had the same kind, the function puts a blank line before the first
        text.
        """
        is_begun = False

        def apart(text: str) -> None:
            nonlocal is_begun
            if text and not is_begun:
                is_begun = True
                text = "\n\n" + text if kind in self._kinds else text
                self._kinds.add(kind)
            give(text)

        return apart


def _open_header(prompt_text: str) -> re.Match[str] | None:
    """Returns the header of the message in which the prompt ends; None if it ends between
    messages.
    """
    *_, last = _BOUNDARY.split(prompt_text)
    header, mark, _ = last.partition(_MESSAGE)
    return _HEADER.fullmatch(header) if mark else None


def _stage_after(prompt_text: str) -> ReasoningStage:
    """Returns `OPEN` in the analysis, `OVER` in another message, `BEFORE` between messages."""
    header = _open_header(prompt_text)
    if header is None:
        return ReasoningStage.BEFORE
    return ReasoningStage.OPEN if header["channel"] == "analysis" else ReasoningStage.OVER


def _make_parser(tools: Sequence[FunctionTool]) -> Parser:
    return HarmonyParser(tools, "")


def _call_format(tool: FunctionTool) -> Format:
    """Makes a call without an end mark, because `<|call|>` ends the model's turn."""
    return call_tag(
        tool, f"{_CHANNEL}commentary to={_FUNCTIONS}{tool.name} {_CONSTRAIN}json{_MESSAGE}", ""
    )


GPT_OSS = Family(
    names=("gpt_oss", "gptoss", "openai", "openai_gptoss", "gpt-oss"),
    matches=lambda template: _CHANNEL in template,
    interleaved=HarmonyParser,
    calls=Calls(
        make_parser=_make_parser,
        trigger=f"{_CHANNEL}commentary to={_FUNCTIONS}",
        call_format=_call_format,
        separator=f"<|end|>{_START}assistant",
        special_tokens=frozenset({_START, _CHANNEL, _MESSAGE, _CONSTRAIN, *_ENDS}),
    ),
    reasoning=Reasoning(
        start=f"{_CHANNEL}analysis{_MESSAGE}",
        end=f"<|end|>{_START}assistant",
        special_tokens=frozenset({_START, _CHANNEL, _MESSAGE, _CONSTRAIN, *_ENDS}),
        answer_start=f"{_CHANNEL}final{_MESSAGE}",
        own_stage=_stage_after,
    ),
)
