"""A model must agree with itself: that is checked at start-up, in the serving precision.

The same few tokens are run in one chunk, in two chunks (the second reads the paged cache), and with all positions
shifted by thousands (rotary positions are relative, so nothing may change). What differs is rounding: 1-5 % of the
logits in bf16 with a u8 cache. A graph whose positions lose bits passes every short test and is 25 % and more off here.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)

NUM_TOKENS = 40  # more than one block of 32
FIRST_CHUNK = 19
COMPARED_ROWS = 8  # the last ones
SHIFT = 4000  # positions
LARGEST_CHUNK_CHANGE = 0.2
LARGEST_SHIFT_CHANGE = 0.1
ALLOWED_NOISE_RATIO = 3.0  # a model that rounds a lot between chunks may do so under the shift, too


class SelfCheckFailed(ModelLoadError):
    """The model does not agree with itself."""


def check_runner(runner: ModelRunner, max_positions: int, *, is_rotary: bool) -> None:
    """Raises SelfCheckFailed when the model does not agree with itself. Uses the first blocks of the cache.

    With `is_rotary` positions are relative; else (learned positions, perhaps) a shift may change the logits.
    """
    num_tokens = min(NUM_TOKENS, runner.info.max_model_len)
    if num_tokens <= FIRST_CHUNK + COMPARED_ROWS:
        logger.warning("no self-check: %d tokens of context are too few", num_tokens)
        return
    token_ids = np.random.default_rng(0).integers(0, runner.info.vocab_size, num_tokens)
    shift = min(SHIFT, max_positions - num_tokens)
    whole = run_chunk(runner, token_ids, 0, 0)
    run_chunk(runner, token_ids[:FIRST_CHUNK], 0, 0)
    chunk_change = relative_change(run_chunk(runner, token_ids[FIRST_CHUNK:], FIRST_CHUNK, 0), whole)
    shift_change = relative_change(run_chunk(runner, token_ids, 0, shift), whole)
    logger.debug("self-check: chunks change the logits by %.4f, a shift by %.4f", chunk_change, shift_change)
    if not chunk_change <= LARGEST_CHUNK_CHANGE:  # so that NaN fails
        raise SelfCheckFailed(
            f"self-check: computing the prompt in two chunks changes the logits by {chunk_change:.0%}; "
            f"rounding explains {LARGEST_CHUNK_CHANGE:.0%} at most. This model does not run correctly on this device"
        )
    largest = max(LARGEST_SHIFT_CHANGE, ALLOWED_NOISE_RATIO * chunk_change)
    if not is_rotary and shift_change > largest:
        logger.warning("self-check: a shift by %d changes the logits by %.0f %%", shift, 100 * shift_change)
    elif not shift_change <= largest:
        raise SelfCheckFailed(
            f"self-check: shifting all positions by {shift} changes the logits by {shift_change:.0%}; rounding "
            f"explains {largest:.0%} at most. Positions lose precision in this model's graph: try --precision f32"
        )


def run_chunk(runner: ModelRunner, token_ids: NDArray[np.int64], past: int, shift: int) -> NDArray[np.float32]:
    """Returns the logits of the chunk's last rows; its sequence lies in the first blocks."""
    end = past + len(token_ids)
    num_blocks = -(-end // runner.info.block_size)
    logits = runner.run(
        ForwardBatch(
            token_ids=token_ids,
            positions=np.arange(past + shift, end + shift, dtype=np.int64),
            past_lens=np.array([past], np.int32),
            subsequence_begins=np.array([0, len(token_ids)], np.int32),
            block_indices=np.arange(num_blocks, dtype=np.int32),
            block_indices_begins=np.array([0, num_blocks], np.int32),
            max_context_len=end,
            sampled_rows=np.arange(len(token_ids) - COMPARED_ROWS, len(token_ids), dtype=np.int64),
        )
    )
    return logits.copy()


def relative_change(logits: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    """Measures relative to the spread of the reference: a common offset of all logits means nothing."""
    spread = reference - reference.mean(axis=1, keepdims=True)
    return float(np.linalg.norm(logits - reference) / np.linalg.norm(spread))
