"""Scales queries by their position, so that attention over a long context stays sharp.

Formula: transformers, models/ministral3/modeling_ministral3.py (first in Llama 4).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class QueryScale:
    """Computes the scale 1 + growth * ln(1 + floor(position / interval))."""

    growth: float
    interval: int  # positions with the same scale

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the scale of each position."""
        scale = 1.0 + self.growth * np.log1p(positions // self.interval)
        return scale.astype(np.float32)
