"""The reasoning of a sequence is counted, and ended when its budget is used up.

Rules
1. Marks are texts, for a model may write them with other tokens than a tokenizer would. `ReasoningBudget.pieces` has
   the bytes of all tokens that can be part of one; every other token is a gap between them.
2. What stands between the marks counts, and so does an end mark of several tokens until it is whole.
3. With the budget's last token the reasoning owes the tokens of its end mark, less those of it that the model has just
   written. Nothing else can come until they stand: they are appended, or the sampler leaves no other token.
4. A grammar takes no mark in the middle of a character of several tokens: then the end is put off until that is whole.
5. The token that opens a call ends the reasoning, if the budget names one: the same text in other tokens does not.
6. All of this follows from the output's tokens, which a preempted sequence keeps.
"""

from enum import Enum, auto

from ouzel.types.engine_request import ReasoningBudget

_GAP = b"\0"
_WHITESPACE = b" \t\r\n"  # parsers pass it before a start


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
        self._num_counted = 0  # since the reasoning began, the last time
        self._stage = _Stage.BEFORE
        self._text = b""  # the end of the output, as far as it can be part of a mark
        self._num_kept = max(
            1, *(len(mark) - 1 for mark in (*budget.starts, *budget.ends))
        )  # bytes of the text
        if budget.is_open:
            self._begin([], b"")

    def note(self, token_ids: list[int]) -> None:
        """Takes note of the last of a sequence's tokens."""
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
        """Looks anywhere, or at the beginning of the output alone where that is the only place of reasoning."""
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
        """`after` is what the token that completes the mark has beyond it."""
        self._stage, self._text, self._num_counted = _Stage.OPEN, after, 0
        if not self._looks_for_end():
            self._end_if_used_up(token_ids)

    def _looks_for_end(self) -> bool:
        """Ends the reasoning, and says so, where the model has ended it."""
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
