"""Tokens that give a client nothing are counted, so that a choice which gives nothing for long can be ended.

A model can write blanks for ever, repeat a control token, or write a text that its parser holds back. A request without
a limit of tokens would run on to the end of the context.
"""

from collections.abc import Sequence

from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta, ToolCallDelta


class HiddenTokens:
    """Counts the tokens in a row that have given no text but blanks.

    Reasoning counts as text also where the request leaves it out of the answer: an agent may reason for long.
    """

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    def note(self, deltas: Sequence[Delta], start: int) -> bool:
        """Takes note of one token, which has given the deltas from `start` on; returns whether the limit is reached."""
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
