"""A parser takes the text of one choice and gives typed pieces of it; a family describes one model's output format.

A parser serves one choice and does no I/O. The deltas, folded together, do not depend on how the text was cut into
pieces. Text that cannot be parsed comes out as content, exactly as the model wrote it.
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
    """Carries a piece of one tool call, the first piece of a call its id and name."""

    index: int  # of the call within the choice, from 0
    id: str | None = None
    name: str | None = None
    arguments: str = ""  # the next piece of the JSON text; of a custom tool's call, of its text
    is_custom: bool = False


Delta = ContentDelta | ReasoningDelta | ToolCallDelta


class Parser(Protocol):
    def feed(self, text: str) -> list[Delta]: ...

    def finish(self, reason: FinishReason) -> list[Delta]:
        """Returns what was held back. `reason` says whether the text is whole or was cut."""
        ...


CONTROL_SIGN = "\ud800"
"""Stands before a call's mark that the model wrote as a control token. No decoded text holds a lone surrogate, so the
parser can tell such a mark from the same text in other tokens. Only `ThinkingParser` reads the sign, and drops it."""

_CALL_ID_CHARS = string.ascii_letters + string.digits


def new_call_id() -> str:
    return "call_" + "".join(secrets.choice(_CALL_ID_CHARS) for _ in range(24))


Format = dict[
    str, object
]  # a structural-tag format, as XGrammar writes them: {"type": "tag", "begin": ..., ...}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Describes how a family writes tool calls; it is used when a request has tools."""

    make_parser: Callable[[Sequence[FunctionTool]], Parser]  # of the text after the reasoning
    trigger: (
        str  # wherever it appears a call follows: the beginning of `before`, or else of every call
    )
    call_format: Callable[[FunctionTool], Format]  # forces one call of this tool, marks included
    before: str = ""  # all calls
    separator: str = ""  # between two calls
    after: str = ""  # all calls
    special_tokens: frozenset[str] = (
        frozenset()
    )  # marks that may be special tokens: the parser must see them
    make_call_id: Callable[[], str] = new_call_id  # of calls to which the model gives no id


class ReasoningStage(enum.Enum):
    """Says where an output begins, as its prompt ends."""

    BEFORE = "before"  # reasoning may come first
    OPEN = "open"  # the prompt has begun the reasoning
    OVER = "over"  # the prompt has ended the reasoning, or has begun the answer without any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Describes the marks around a family's reasoning."""

    start: str
    end: str
    special_tokens: frozenset[str] = frozenset()
    other_starts: tuple[str, ...] = ()  # that some models write instead
    other_ends: tuple[str, ...] = ()
    ended_by: tuple[str, ...] = ()  # marks of what follows, where models forget the end
    answer: tuple[str, str] | None = None  # marks around the answer after it
    answer_start: str = ""  # what a demanded answer begins with, unless the prompt has begun it
    are_exact: bool = True  # whether the marks are these texts, rather than spellings of patterns
    # of a prompt's text, where marks alone do not tell it
    own_stage: Callable[[str], ReasoningStage] | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        return (self.start, *self.other_starts)

    @property
    def ends(self) -> tuple[str, ...]:
        return (self.end, *self.other_ends, *self.ended_by)

    def stage_after(self, prompt_text: str, *, continues_prompt: bool) -> ReasoningStage:
        """Returns where the output begins. Parsers and grammars both go by this.

        A template may end the prompt with a mark. With `continues_prompt` the prompt ends with a text of the
        assistant's own, that may have begun or ended the reasoning long before: then the last mark decides.
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
    """Describes one output format completely."""

    names: tuple[str, ...]  # ours first, then those that other servers use for it
    matches: Callable[[str], bool]  # whether a chat template is of this family
    calls: Calls | None = None
    reasoning: Reasoning | None = None
    interleaved: Callable[[Sequence[FunctionTool], str], Parser] | None = None
    """Makes the parser of everything from tools and prompt text, where reasoning and calls cannot be parted before."""
