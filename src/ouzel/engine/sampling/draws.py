"""Draws the next token of a sequence from weights, in one of two ways.

* The client gave the seed and may repeat the request: a race (`token_race`), whose result hardly
depends on how the weights were rounded.
- The seed is random: the cumulative weights are searched for a random number. This takes less time,
  but a change of the sum by a thousandth can select another token.

Both depend on the seed, the choice, the position and the weights; never on the batch.
"""

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.sampling.philox import random_bits, uniform, uniforms
from ouzel.engine.sampling.token_race import Keys
from ouzel.engine.state.columns import ColumnSums
from ouzel.sampling import SamplingParams

_MANY_ROWS = 16  # least number of rows for which numpy is faster than a loop


class Draw(Protocol):
    """A draw of the next token; a sequence implements it."""

    @property
    def params(self) -> SamplingParams: ...

    @property
    def index(self) -> int: ...

    @property
    def num_output_tokens(self) -> int: ...


# Draws a token of one sequence, whose weight is not 0. A second call draws again, among fewer
# tokens.
Picker = Callable[[ColumnSums], int]


def lookup_picker(sequence: Draw, first_uniform: float) -> Picker:
    """Makes a picker for a random seed: each pick uses the next random number."""
    numbers = chain([first_uniform], _further_uniforms(sequence))
    return lambda mass: mass.find(next(numbers))


def race_key(sequence: Draw) -> int:
    """Returns the 64 random bits of the sequence's next race."""
    return random_bits(sequence.params.seed, sequence.index, sequence.num_output_tokens)


def race_keys(sequences: list[Draw]) -> Keys:
    return np.array([race_key(each) for each in sequences], dtype=np.uint64)


def first_uniforms(sequences: list[Draw]) -> NDArray[np.float64]:
    if len(sequences) < _MANY_ROWS:
        return np.array(
            [uniform(each.params.seed, each.index, each.num_output_tokens, 0) for each in sequences]
        )
    return uniforms(
        np.array([sequence.params.seed for sequence in sequences], dtype=np.int64),
        np.array([sequence.index for sequence in sequences], dtype=np.int64),
        np.array([sequence.num_output_tokens for sequence in sequences], dtype=np.int64),
        np.zeros(len(sequences), dtype=np.int64),
    )


def _further_uniforms(sequence: Draw) -> Iterator[float]:
    for draw_number in count(1):
        yield uniform(sequence.params.seed, sequence.index, sequence.num_output_tokens, draw_number)
