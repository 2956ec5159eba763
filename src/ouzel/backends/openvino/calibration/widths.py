"""Chooses the matrices that get eight bits instead of four, within a budget of bits.

The loss of a matrix is the error of its products relative to the products themselves, with the mean
squares of its inputs as weights. If a product is added to the sum that runs through the model, the
error counts relative to the sum. The matrices come in the order of the error that one more bit
saves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import int4_group_size, search_scales

MAX_BITS = 4.6  # most bits of a weight on average, scales included
SCALE_BITS = 16
ADDED_BITS = 4  # bits that a weight in int8 has more than a weight in int4
# An error relative to the sum changes the next token by this factor more than an error relative to
# a product: the gradients of SmolLM2-135M give 2.3 and 0.2 nats, the former nearly the same in all
# layers.
SUM_FACTOR = 11.0


@dataclass(frozen=True, slots=True)
class Candidate:
    key: str
    num_weights: int
    columns: int
    suffering: float  # loss with four bits

    @property
    def int4_bits(self) -> float:
        return self.num_weights * (4 + SCALE_BITS / int4_group_size(self.columns))


def suffering(
    chunks: Iterable[NDArray[np.float32]], mean_squares: NDArray[np.float32], *, is_divided: bool
) -> float:
    """Returns the loss of a matrix by plain rounding to four bits.

    `chunks` are the rows of the matrix, `mean_squares` the mean squares of its inputs. With
    `is_divided` the inputs were divided by the norms of sums.
    """
    error = total = 0.0
    for rows in chunks:
        levels, scales = search_scales(rows.reshape(-1, int4_group_size(rows.shape[1])))
        difference = rows - (levels.view(np.int8) * scales[:, None]).reshape(rows.shape)
        error += float(((difference * difference) @ mean_squares).sum())
        total += float(((rows * rows) @ mean_squares).sum())
    if is_divided:
        return SUM_FACTOR * error
    return error / total if total else 0.0


def choose_int8(candidates: Sequence[Candidate], max_bits: float = MAX_BITS) -> frozenset[str]:
    """Returns the keys of the matrices for int8."""
    num_weights = sum(each.num_weights for each in candidates)
    left = max_bits * num_weights - sum(each.int4_bits for each in candidates)
    chosen = set()
    for each in sorted(candidates, key=lambda each: (-each.suffering / each.num_weights, each.key)):
        cost = each.num_weights * ADDED_BITS
        if cost <= left:
            left -= cost
            chosen.add(each.key)
    return frozenset(chosen)
