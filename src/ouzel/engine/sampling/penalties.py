"""Lowers the logits of tokens that a sequence has already seen.

The repetition penalty counts prompt and output, the other two count the output. With
`repeat_last_n`, only so many of the last tokens count.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.state.columns import Row
from ouzel.engine.state.sequence import Sequence
from ouzel.engine.state.token_counts import TokenCounts


def penalise(row: Row, sequence: Sequence) -> None:
    """Applies the three penalties in place."""
    params = sequence.params
    token_ids, output_counts = _seen_tokens(sequence)
    seen = row[token_ids]
    seen = np.where(
        seen > 0,
        seen / np.float32(params.repetition_penalty),
        seen * np.float32(params.repetition_penalty),
    )
    seen -= np.float32(params.presence_penalty) * (output_counts > 0)
    seen -= np.float32(params.frequency_penalty) * output_counts
    row[token_ids] = seen


def _seen_tokens(sequence: Sequence) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Returns the distinct tokens that count, and their numbers in the output."""
    window = sequence.params.repeat_last_n
    if 0 < window < len(sequence.token_ids):
        return _seen_in_window(sequence, window)
    if sequence.token_counts is None:
        sequence.token_counts = TokenCounts(sequence.request.prompt_token_ids)
    counts = sequence.token_counts
    counts.follow(sequence.token_ids[sequence.num_prompt_tokens :])
    return counts.token_ids, counts.output_counts


def _seen_in_window(
    sequence: Sequence, window: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    last = np.array(sequence.token_ids[-window:], dtype=np.int64)
    num_of_prompt = max(window - sequence.num_output_tokens, 0)
    token_ids, places = np.unique(last, return_inverse=True)
    output_counts = np.bincount(places[num_of_prompt:], minlength=token_ids.size)
    return token_ids, output_counts.astype(np.float32)
