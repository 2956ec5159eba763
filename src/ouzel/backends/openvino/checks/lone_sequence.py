"""Makes a step of one sequence in the first blocks of the KV cache, for checks, trials and
recordings.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_info import EngineInfo

WHOLE_SLOTS = (0, 1)  # slots of states: the step reads the first one and writes the second


def lone_batch(
    info: EngineInfo,
    token_ids: NDArray[np.int64],
    sampled_rows: NDArray[np.int64],
    *,
    num_past: int = 0,
    shift: int = 0,
    slots: tuple[int, int] = WHOLE_SLOTS,
) -> ForwardBatch:
    """Returns the batch of the tokens that follow `num_past` tokens in the cache.

    All positions are moved by `shift`.
    """
    end = num_past + len(token_ids)
    num_blocks = -(-end // info.block_size)
    return ForwardBatch(
        token_ids=token_ids,
        positions=np.arange(num_past + shift, end + shift, dtype=np.int64),
        past_lens=np.array([num_past], np.int32),
        subsequence_begins=np.array([0, len(token_ids)], np.int32),
        block_indices=np.arange(num_blocks, dtype=np.int32),
        block_indices_begins=np.array([0, num_blocks], np.int32),
        max_context_len=end,
        sampled_rows=sampled_rows,
        state_slots=np.array([slots], np.int32) if info.num_state_slots else None,
    )
