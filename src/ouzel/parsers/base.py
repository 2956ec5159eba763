"""What a parser is: text of one choice in, typed pieces of it out.

One instance per choice, no I/O. The deltas, folded together, do not depend on how the text was cut into pieces.
Text that cannot be parsed comes out as content, exactly as the model wrote it.
"""

from typing import Protocol

import msgspec

from ouzel.types import FinishReason


class ContentDelta(msgspec.Struct, frozen=True):
    text: str  # never empty


class ReasoningDelta(msgspec.Struct, frozen=True):
    text: str  # never empty


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of one tool call; the first piece of a call carries its id and name."""

    index: int  # of the call within the choice, from 0
    id: str | None = None
    name: str | None = None
    arguments: str = ""  # the next piece of the JSON text


Delta = ContentDelta | ReasoningDelta | ToolCallDelta


class Parser(Protocol):
    def feed(self, text: str) -> list[Delta]: ...

    def finish(self, reason: FinishReason) -> list[Delta]:
        """What was held back. `reason` says whether the text is whole or was cut."""
        ...
