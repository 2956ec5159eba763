"""Adds two rows to a step, so that the bits of its own rows do not depend on their number.

The runtime's attention has one loop for steps whose subsequences all have one row and are fewer
than the threads, and another loop for all other steps. The two loops round differently. The added
subsequence of two rows sends every step through the second loop. It also makes each matrix product
have two rows at least; its sampled row does the same for the product of the head.
"""

from dataclasses import replace

import numpy as np

from ouzel.config import EngineConfig
from ouzel.engine.base import ForwardBatch

_NUM_ROWS = 2


def num_padding_blocks(engine: EngineConfig) -> int:
    """Returns the number of blocks after the blocks that sequences can get.

    Added rows are written there, and rows of the check at the start.
    """
    return 1 if engine.deterministic else 0


def add_padding_rows(batch: ForwardBatch, block: int) -> ForwardBatch:
    """Appends a subsequence of two rows, which is written to `block`.

    Its logits are the last ones, if the batch samples any row. Adapters and states are refused
    beside `--deterministic` (`row_check.refuse_kinds`).
    """
    assert batch.adapter_slots is None and batch.state_slots is None
    num_rows = len(batch.token_ids)
    own_positions = np.arange(_NUM_ROWS, dtype=np.int64)
    own_positions = np.broadcast_to(own_positions, (*batch.positions.shape[:-1], _NUM_ROWS))
    return replace(
        batch,
        token_ids=np.append(batch.token_ids, np.zeros(_NUM_ROWS, np.int64)),
        positions=np.concatenate([batch.positions, own_positions], axis=-1),
        past_lens=np.append(batch.past_lens, np.int32(0)),
        subsequence_begins=np.append(batch.subsequence_begins, np.int32(num_rows + _NUM_ROWS)),
        block_indices=np.append(batch.block_indices, np.int32(block)),
        block_indices_begins=np.append(
            batch.block_indices_begins, np.int32(len(batch.block_indices) + 1)
        ),
        max_context_len=max(batch.max_context_len, _NUM_ROWS),
        sampled_rows=np.append(batch.sampled_rows, num_rows + 1)
        if batch.sampled_rows.size
        else batch.sampled_rows,
    )
