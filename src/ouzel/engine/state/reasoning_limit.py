"""Counts the reasoning tokens of a sequence and ends the reasoning when its budget is used up.

Rules
1. Marks are texts, because a model may write them with other tokens than a tokenizer would.
   `ReasoningBudget.pieces` has the bytes of all tokens that can be part of a mark; every other
   token is a gap.
2. The tokens between the marks count. The tokens of an end mark count until it is complete.
3. With the last token of the budget, the tokens of the end mark become due, except tokens of it
   that the model has just written. No other token can come before them: they are appended, or the
   sampler excludes all other tokens.
4. A grammar takes no mark in the middle of a character of several tokens: the end is then put off
   until the character is complete.
5. The token that opens a tool call ends the reasoning if the budget names one; the same text in
   other tokens does not.
6. The state follows from the output's tokens, which a preempted sequence keeps.
"""

from enum import Enum, auto

from ouzel.types.engine_request import ReasoningBudget

_GAP = b"\0"
_WHITESPACE = b" \t\r\n"  # parsers skip it before a start mark


class _Stage(Enum):
    BEFORE = auto()  # reasoning may begin
    OPEN = auto()
    OVER = auto()


class ReasoningLimit:
    """Follows one sequence through its reasoning."""

    def __init__(self, budget: ReasoningBudget) -> None:
        self.due: tuple[int, ...] = ()  # these tokens must come next, unless they are put off
        self.is_put_off = False
        self._budget = budget
        self._num_left = budget.max_tokens
        self._num_counted = 0  # tokens since the last begin of a reasoning
        self._stage = _Stage.BEFORE
        self._text = b""  # the end of the output, as far as it can be part of a mark
        # bytes of the text to keep
        self._num_kept = max(1, *(len(mark) - 1 for mark in (*budget.starts, *budget.ends)))
        if budget.is_open:
            self._begin([], b"")

    def note(self, token_ids: list[int]) -> None:
        """Updates the state by the last of the sequence's tokens."""
        if self._stage is _Stage.OVER:
            return
        if self.due and not self.is_put_off:
            assert token_ids[-1] == self.due[0]
            self.due = self.due[1:]
            if not self.due:
                self._end()
            return
        if self._stage is _Stage.OPEN and token_ids[-1] == self._budget.call_token_id:
            self._end()
            return
        self._text += self._budget.pieces.get(token_ids[-1], _GAP)
        if self._stage is _Stage.BEFORE:
            self._look_for_start(token_ids)
        elif not self._looks_for_end():
            self._num_left -= 1
            self._num_counted += 1
            self._text = self._text[-self._num_kept :]
            self._end_if_used_up(token_ids)

    def _look_for_start(self, token_ids: list[int]) -> None:
        """Begins the reasoning at a start mark.

        Looks for the mark anywhere, or only at the beginning of the output if reasoning cannot
        repeat.
        """
        starts = self._budget.starts
        if self._budget.may_repeat:
            after = next(
                (self._text.split(start, 1)[1] for start in starts if start in self._text), None
            )
            self._text = self._text[-self._num_kept :]
        else:
            self._text = self._text.lstrip(_WHITESPACE)
            after = next(
                (self._text[len(start) :] for start in starts if self._text.startswith(start)), None
            )
        if after is not None:
            self._begin(token_ids, after)
        elif not self._budget.may_repeat and not any(
            start.startswith(self._text) for start in starts
        ):
            self._stage = _Stage.OVER

    def _begin(self, token_ids: list[int], after: bytes) -> None:
        """Opens the reasoning. `after` is the text of the mark's last token beyond the mark."""
        self._stage, self._text, self._num_counted = _Stage.OPEN, after, 0
        if not self._looks_for_end():
            self._end_if_used_up(token_ids)

    def _looks_for_end(self) -> bool:
        """Ends the reasoning if the model has written an end mark; returns whether it has."""
        has_end = any(end in self._text for end in self._budget.ends)
        if has_end:
            self._end()
        return has_end

    def _end_if_used_up(self, token_ids: list[int]) -> None:
        if self._num_left > 0:
            return
        mark = list(self._budget.end_token_ids)
        num_tokens = len(token_ids)
        most = min(len(mark) - 1, self._num_counted)
        num_written = next(
            num for num in range(most, -1, -1) if token_ids[num_tokens - num :] == mark[:num]
        )
        self.due = tuple(mark[num_written:])

    def _end(self) -> None:
        self._stage = _Stage.BEFORE if self._budget.may_repeat else _Stage.OVER
        self._text, self.due = b"", ()
