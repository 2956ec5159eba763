"""Computes logprobs of the model's own distribution, before the request's parameters change it."""

import math
from collections.abc import Iterable

import numpy as np

from ouzel.engine.sampling import row_memory
from ouzel.engine.state.columns import Row, largest
from ouzel.types.step_output import PositionLogprobs, TokenLogprob

_SAFE_LOGIT = 60.0  # the sum of e^60 over any vocabulary is a float32


class OwnLogprobs:
    """The logprobs at one position. `at` reads the row again: it must not change before."""

    def __init__(self, row: Row, num_top: int, token_ids: tuple[int, ...] = ()) -> None:
        """`token_ids` are shown after the `num_top` most likely tokens."""
        self._row = row
        # empty if the row has NaN
        most_likely = largest(row, min(max(num_top, 1), row.size))
        descending = most_likely[np.argsort(-row[most_likely], kind="stable")]
        self._normaliser = (
            log_sum_exp(row, float(row[descending[0]])) if descending.size else math.nan
        )
        shown = dict.fromkeys((*descending[:num_top].tolist(), *token_ids))
        self._top = tuple(map(self._logprob, shown))

    def at(self, token_id: int) -> PositionLogprobs:
        """Returns the logprobs of the sampled token and of the most likely tokens."""
        return PositionLogprobs(self._logprob(token_id), self._top)

    def at_prompt_token(self, token_id: int) -> PositionLogprobs:
        """Returns the logprob and rank of the prompt's token, and the logprobs of the most likely
        tokens.
        """
        rank = 1 + int(np.count_nonzero(self._row > self._row[token_id]))
        return PositionLogprobs(self._logprob(token_id), self._top, rank)

    def _logprob(self, token_id: int) -> TokenLogprob:
        logprob = float(self._row[token_id]) - self._normaliser
        # Rounding may leave a certain token slightly above 0.
        return TokenLogprob(token_id, min(logprob, 0.0))


def score(rows: Iterable[Row], token_ids: Iterable[int], num_top: int) -> list[PositionLogprobs]:
    """Returns the logprobs of prompt tokens.

    Raises ValueError if the model's output is not a number.
    """
    positions = [
        OwnLogprobs(row, num_top).at_prompt_token(token_id)
        for row, token_id in zip(rows, token_ids, strict=True)
    ]
    if any(math.isnan(position.sampled.logprob) for position in positions):
        raise ValueError("the model's logits are not numbers")
    return positions


def log_sum_exp(row: Row, largest_logit: float) -> float:
    """Returns the logarithm of the sum of exponentials; NaN if the largest logit is not finite."""
    if not math.isfinite(largest_logit):
        return math.nan
    exponentials = row_memory.take(row.size)
    shift = 0.0 if abs(largest_logit) <= _SAFE_LOGIT else largest_logit
    np.exp(
        row if shift == 0.0 else np.subtract(row, np.float32(shift), out=exponentials),
        out=exponentials,
    )
    total = float(exponentials.sum())
    row_memory.give_back([exponentials])
    return shift + math.log(total)
