"""Holds the sound of a part of a text."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SpokenPart:
    """The sound of one sentence, or of several short ones."""

    samples: NDArray[np.float32]  # [T] mono, in [-1, 1]
    num_tokens: int  # phoneme tokens that the model read
