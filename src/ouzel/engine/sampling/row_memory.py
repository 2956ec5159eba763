"""Working memory, in rows, is kept for the next use: fresh memory costs as much as the exps that go into it."""

import numpy as np

from ouzel.engine.state.columns import Row

_MAX_FREE_ROWS = 64  # 39 MB with Qwen3's vocabulary

_free_rows: list[Row] = []


def take(size: int) -> Row:
    """Returns a row to be overwritten, whatever it holds."""
    try:
        while (row := _free_rows.pop()).size != size:
            pass
    except (
        IndexError
    ):  # none is left; not asked before, as another engine's thread may take the last one
        return np.empty(size, dtype=np.float32)
    return row


def give_back(rows: list[Row]) -> None:
    """Gives back what `take` gave, when nobody reads it any more."""
    _free_rows.extend(rows[: max(_MAX_FREE_ROWS - len(_free_rows), 0)])
