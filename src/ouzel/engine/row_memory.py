"""Working memory of one row each, kept for the next use: fresh memory costs as much as the exps that go into it."""

import numpy as np

from ouzel.engine.columns import Row

_MAX_KEPT = 64  # 39 MB with Qwen3's vocabulary

_kept: list[Row] = []


def take(size: int) -> Row:
    """Whatever it holds is to be overwritten."""
    try:
        while (row := _kept.pop()).size != size:
            pass
    except IndexError:  # none is left; not asked before, as another engine's thread may take the last one
        return np.empty(size, dtype=np.float32)
    return row


def give_back(rows: list[Row]) -> None:
    """What `take` gave, when nobody reads it any more."""
    _kept.extend(rows[: max(_MAX_KEPT - len(_kept), 0)])
