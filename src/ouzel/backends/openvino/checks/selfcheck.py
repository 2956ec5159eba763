"""Checks at start-up, in the serving precision, that a model agrees with itself.

The check runs the same few tokens in one chunk, in three chunks, each of which reads the paged
cache and the state of the chunk before, and with all positions shifted by thousands (rotary
positions are relative, so the logits must stay). Rounding explains differences of 1-5 % of the
logits in bf16 with a u8 cache. A graph whose positions lose bits passes every short test and
differs by 25 % and more here. A sound model that amplifies rounding may differ as much. But it does
so also with a shift of a few positions, where no graph loses bits. The tokens of one prompt may go
to other experts because of a rounding error, so one failed prompt proves nothing: a broken model
fails with each prompt.
"""

import logging
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.checks.lone_sequence import WHOLE_SLOTS, lone_batch
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

NUM_PROMPTS = 3  # prompts to try; one passed prompt is enough
NUM_TOKENS = 40  # more than one block of 32
MIDDLE_CHUNK = 13
# The compared rows are the last ones, which make the last chunk: states of short convolutions reach
# back two or three rows.
COMPARED_ROWS = 8
SHIFT = 4000  # positions
NEAR_SHIFT = 64  # positions; with this shift they stay below 256, which bf16 holds exactly
# Slots of states that each chunk reads and writes.
CHUNK_SLOTS = ((0, 1), (1, 2), (2, 1))
LARGEST_CHUNK_CHANGE = 0.2
LARGEST_SHIFT_CHANGE = 0.1
# Allowed ratio to the change between chunks or by a small shift: a model that rounds a lot there
# may round as much here.
ALLOWED_NOISE_RATIO = 3.0


class SelfCheckFailed(ModelLoadError):
    """Raised when a model computes different results for the same tokens in different ways."""


def num_checked_tokens(info: EngineInfo) -> int:
    """Returns the tokens that a check leaves in the first blocks of the cache.

    Returns 0 if the context is too short for a check.
    """
    num_tokens = min(NUM_TOKENS, info.max_model_len)
    return num_tokens if num_tokens >= COMPARED_ROWS + MIDDLE_CHUNK + COMPARED_ROWS else 0


def check_runner(runner: ModelRunner, num_relative_positions: int, *, is_rotary: bool) -> None:
    """Raises SelfCheckFailed if none of a few random prompts passes `check_prompt`.

    The check overwrites the first blocks of the cache. With `is_rotary` positions are relative
    within `num_relative_positions`. Otherwise (perhaps learned positions) a shift may change the
    logits.
    """
    num_tokens = num_checked_tokens(runner.info)
    if not num_tokens:
        logger.warning("no self-check: %d tokens of context are too few", runner.info.max_model_len)
        return
    for seed in range(NUM_PROMPTS):
        token_ids = np.random.default_rng(seed).integers(0, runner.info.vocab_size, num_tokens)
        try:
            check_prompt(runner, token_ids, num_relative_positions, is_rotary=is_rotary)
        except SelfCheckFailed as error:
            logger.debug("prompt %d: %s", seed, error)
            failure = error
        else:
            return
    raise failure


def warm_up(runner: ModelRunner) -> None:
    """Runs one chunk; used in place of a check that was passed before.

    Raises SelfCheckFailed if the logits are not finite.
    """
    num_tokens = min(NUM_TOKENS, runner.info.max_model_len)
    if num_tokens < COMPARED_ROWS:
        return
    token_ids = np.random.default_rng(0).integers(0, runner.info.vocab_size, num_tokens)
    if not np.isfinite(run_chunk(runner, token_ids, slice(0, num_tokens))).all():
        raise SelfCheckFailed(
            "self-check: the logits are not finite. This model does not run correctly on this "
            "device"
        )


def check_prompt(
    runner: ModelRunner,
    token_ids: NDArray[np.int64],
    num_relative_positions: int,
    *,
    is_rotary: bool,
) -> None:
    """Compares the logits of one prompt, computed at once, in chunks and at other positions.

    Raises SelfCheckFailed if they differ too much.
    """
    num_tokens = len(token_ids)
    shift = min(SHIFT, max(num_relative_positions - num_tokens, 0))
    whole = run_chunk(runner, token_ids, slice(0, num_tokens))
    last_begin = num_tokens - COMPARED_ROWS
    begins = (0, last_begin - MIDDLE_CHUNK, last_begin, num_tokens)
    for chunk, slots in zip(pairwise(begins), CHUNK_SLOTS, strict=True):
        last = run_chunk(runner, token_ids, slice(*chunk), slots)
    chunk_change = relative_change(last, whole)

    def change_by(shift: int) -> float:
        return relative_change(
            run_chunk(runner, token_ids, slice(0, num_tokens), shift=shift), whole
        )

    shift_change = change_by(shift)
    logger.debug(
        "self-check: chunks change the logits by %.4f, a shift by %.4f", chunk_change, shift_change
    )
    if not chunk_change <= LARGEST_CHUNK_CHANGE:  # written so that NaN fails
        raise SelfCheckFailed(
            "self-check: computing the prompt in several chunks changes the logits by "
            f"{chunk_change:.0%}; rounding explains {LARGEST_CHUNK_CHANGE:.0%} at most. "
            "This model does not run correctly on this device"
        )
    if shift_change <= LARGEST_SHIFT_CHANGE:
        return
    largest = max(
        LARGEST_SHIFT_CHANGE,
        ALLOWED_NOISE_RATIO * max(chunk_change, change_by(min(NEAR_SHIFT, shift))),
    )
    if not is_rotary and shift_change > largest:
        logger.warning(
            "self-check: a shift by %d changes the logits by %.0f %%", shift, 100 * shift_change
        )
    elif not shift_change <= largest:
        raise SelfCheckFailed(
            f"self-check: shifting all positions by {shift} changes the logits by "
            f"{shift_change:.0%}; rounding explains {largest:.0%} at most. "
            "Positions lose precision in this model's graph: try --precision f32"
        )


def run_chunk(
    runner: ModelRunner,
    token_ids: NDArray[np.int64],
    chunk: slice,
    slots: tuple[int, int] = WHOLE_SLOTS,
    *,
    shift: int = 0,
) -> NDArray[np.float32]:
    """Returns the logits of the chunk's last rows; its sequence lies in the first blocks."""
    num_tokens = chunk.stop - chunk.start
    rows = np.arange(num_tokens - COMPARED_ROWS, num_tokens, dtype=np.int64)
    tokens = token_ids[chunk]
    logits = runner.run(
        lone_batch(runner.info, tokens, rows, num_past=chunk.start, shift=shift, slots=slots)
    )
    return logits.copy()


def relative_change(logits: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    """Returns the change of the logits relative to the spread of the reference.

    The spread leaves out a common offset of the logits, which means nothing, unless a row has one
    logit only.
    """
    with np.errstate(all="ignore"):  # infinite logits give NaN, which fails
        spread = reference
        if reference.shape[1] > 1:
            spread = reference - reference.mean(axis=1, keepdims=True)
        return float(np.linalg.norm(logits - reference) / np.linalg.norm(spread))
