"""The interface of parsers, and the description of one model family's output format.

A parser turns the text of one choice into typed deltas. It serves one choice and does no I/O. The
joined deltas do not depend on the places where the text was cut into pieces. Text that cannot be
parsed becomes content, exactly as the model wrote it.
"""

import enum
import secrets
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool


class ContentDelta(msgspec.Struct, frozen=True):
    text: str  # never empty


class ReasoningDelta(msgspec.Struct, frozen=True):
    text: str  # never empty


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of one tool call. The first piece of a call has its id and name."""

    index: int  # position of the call within the choice, from 0
    id: str | None = None
    name: str | None = None
    arguments: str = ""  # the next piece of the JSON text, or of a custom tool's plain text
    is_custom: bool = False


Delta = ContentDelta | ReasoningDelta | ToolCallDelta


class Parser(Protocol):
    def feed(self, text: str) -> list[Delta]: ...

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Returns the deltas of the text that was held back.

        `reason` tells whether the text is complete or was cut.
        """
        ...


CONTROL_SIGN = "\ud800"
"""Stands before a call's mark that the model wrote as a control token. Decoded text never contains
a lone surrogate, so the parser can distinguish the mark from the same characters in other tokens.
Only `ThinkingParser` reads the sign, and removes it.
"""

_CALL_ID_CHARS = string.ascii_letters + string.digits


def new_call_id() -> str:
    return "call_" + "".join(secrets.choice(_CALL_ID_CHARS) for _ in range(24))


# A structural-tag format in XGrammar's notation: {"type": "tag", "begin": ..., ...}
Format = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How a family writes tool calls. It is used when a request has tools."""

    make_parser: Callable[[Sequence[FunctionTool]], Parser]  # parses the text after the reasoning
    # A call follows this text wherever it occurs. It is the beginning of `before`, or of every
    # call.
    trigger: str
    # makes the format that forces one call of the tool, marks included
    call_format: Callable[[FunctionTool], Format]
    before: str = ""  # text before the first call
    separator: str = ""  # text between two calls
    after: str = ""  # text after the last call
    # marks that may be special tokens; the parser must see them
    special_tokens: frozenset[str] = frozenset()
    make_call_id: Callable[[], str] = new_call_id  # if the model wrote no id


class ReasoningStage(enum.Enum):
    """The state of the reasoning where the output begins. The end of the prompt decides it."""

    BEFORE = "before"  # reasoning may come first
    OPEN = "open"  # the prompt has begun the reasoning
    OVER = "over"  # the prompt has ended the reasoning, or has begun the answer without any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The marks around a family's reasoning."""

    start: str
    end: str
    special_tokens: frozenset[str] = frozenset()
    other_starts: tuple[str, ...] = ()  # start marks that some models write instead
    other_ends: tuple[str, ...] = ()
    ended_by: tuple[str, ...] = ()  # marks that follow the reasoning if a model omits the end mark
    answer: tuple[str, str] | None = None  # marks around the answer after the reasoning
    # the start of an answer that a grammar forces, unless the prompt already contains it
    answer_start: str = ""
    are_exact: bool = True  # False if the marks only stand for patterns
    # finds the stage from the prompt's text, if marks are not enough
    own_stage: Callable[[str], ReasoningStage] | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        return (self.start, *self.other_starts)

    @property
    def ends(self) -> tuple[str, ...]:
        return (self.end, *self.other_ends, *self.ended_by)

    def stage_after(self, prompt_text: str, *, continues_prompt: bool) -> ReasoningStage:
        """Returns the place where the output begins. Parsers and grammars both use it.

        A template may end the prompt with a mark. With `continues_prompt`, the prompt ends with the
        assistant's own text, which may have begun or ended the reasoning long before; then the last
        mark in the prompt decides.
        """
        if self.own_stage is not None:
            return self.own_stage(prompt_text)
        starts = tuple(map(str.rstrip, self.starts))
        ends = tuple(map(str.rstrip, self.ends))
        if continues_prompt:
            is_open = max(map(prompt_text.rfind, starts)) > max(map(prompt_text.rfind, ends))
            return ReasoningStage.OPEN if is_open else ReasoningStage.OVER
        prompt_text = prompt_text.rstrip()
        if prompt_text.endswith(starts):
            return ReasoningStage.OPEN
        return ReasoningStage.OVER if prompt_text.endswith(ends) else ReasoningStage.BEFORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The complete description of one output format."""

    names: tuple[str, ...]  # our name first, then the names in other servers
    matches: Callable[[str], bool]  # tells whether a chat template belongs to this family
    calls: Calls | None = None
    reasoning: Reasoning | None = None
    interleaved: Callable[[Sequence[FunctionTool], str], Parser] | None = None
    """Makes the parser of the whole output from tools and prompt text, if reasoning and calls are
    mixed.
    """
