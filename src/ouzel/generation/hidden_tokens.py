"""Counts tokens that give a client nothing, to end a choice that gives nothing for long.

A model can write blanks for ever, repeat a control token, or write a text that its parser holds
back. A request without a token limit would run to the end of the context.
"""

from collections.abc import Sequence

from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta, ToolCallDelta


class HiddenTokens:
    """A counter of successive tokens that gave no text except blanks.

    Reasoning counts as text even if the request hides it: an agent may reason for long.
    """

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    def note(self, deltas: Sequence[Delta], start: int) -> bool:
        """Adds a token with the deltas from `start` on; returns whether the limit is reached."""
        for position in range(start, len(deltas)):
            if _shows_text(deltas[position]):
                self.count = 0
                return False
        self.count += 1
        return self.count >= self._limit


def _shows_text(delta: Delta) -> bool:
    match delta:
        case ContentDelta(text) | ReasoningDelta(text):
            return not text.isspace()
        case ToolCallDelta():
            return delta.name is not None or delta.arguments.strip() != ""
