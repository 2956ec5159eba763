"""The costs of steps are measured on the machine that runs them, in moments in which nothing is asked.

Steps of several row counts run one after the other on blocks that nobody has, in a few rounds; of each the fastest one
counts. Later every step that only decodes says how far that was right: what disturbs a step makes it slower, so a
faster one is believed at once and a slower one little by little.
"""

import logging
import time
from collections.abc import Generator
from itertools import pairwise

import numpy as np

from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.block_manager import BlockManager
from ouzel.engine.speculation.step_costs import StepCosts, rising

logger = logging.getLogger(__name__)

_ROW_COUNTS = (1, 2, 4, 8, 16, 32)
_LONG_CONTEXT = 1024  # tokens; less where there are fewer blocks
_LONG_ROWS = 8
_NUM_ROUNDS = 3
_BELIEF_IN_FASTER, _BELIEF_IN_SLOWER = 0.5, 0.05  # of 1, in one step


class MeasuredCosts:
    """They become known step by step."""

    def __init__(self, runner: ModelRunner, blocks: BlockManager, known: StepCosts | None = None) -> None:
        self.known = known
        self._is_given = known is not None
        self._name = runner.info.model_type
        self._measurement = None if self._is_given else measurement(runner, blocks)

    def advance(self) -> bool:
        """Takes one of the steps that tell what steps cost; returns whether there are more."""
        if self._measurement is None:
            return False
        try:
            next(self._measurement)
        except StopIteration as end:
            self._measurement, self.known = None, end.value
            logger.info("costs of steps of %s: %s", self._name, self.known)
        return self._measurement is not None

    def note(self, num_rows: int, num_context_tokens: int, seconds: float) -> None:
        """Corrects them by what a step took."""
        if self.known is None or self._is_given:
            return
        ratio = seconds / self.known.of(num_rows, num_context_tokens)
        belief = _BELIEF_IN_FASTER if ratio < 1 else _BELIEF_IN_SLOWER
        self.known = self.known.corrected(num_rows, 1 + belief * (min(ratio, 2.0) - 1))


def measurement(runner: ModelRunner, blocks: BlockManager) -> Generator[None, None, StepCosts | None]:
    """Runs a step between any two yields. Returns None where there are too few blocks to measure on."""
    info = runner.info
    counts = [num for num in _ROW_COUNTS if num <= min(info.max_model_len, info.max_num_batched_tokens)]
    longest = min(info.max_model_len, (info.num_blocks - 1) * info.block_size) - counts[-1]
    if len(counts) < 2 or longest < 1:
        return None
    long_rows, long_past = min(_LONG_ROWS, counts[-1]), min(_LONG_CONTEXT, longest)
    fastest: dict[tuple[int, int], float] = {}
    for _ in range(_NUM_ROUNDS):
        for num_rows, num_past in (*((count, 0) for count in counts), (long_rows, long_past)):
            yield
            batch = _batch(blocks, num_rows, num_past)
            if batch is None:
                return None
            begin = time.perf_counter()
            runner.run(batch)
            seconds = time.perf_counter() - begin
            fastest[num_rows, num_past] = min(fastest.get((num_rows, num_past), seconds), seconds)
    costs = StepCosts(tuple(counts), tuple(rising([fastest[count, 0] for count in counts])))
    more = max(0.0, fastest[long_rows, long_past] - costs.of(long_rows))
    return StepCosts(costs.num_rows, costs.seconds, more / (long_rows * long_past))


def _batch(blocks: BlockManager, num_rows: int, num_past: int) -> ForwardBatch | None:
    """Makes rows of one sequence as `build_batch` does for one that proposes tokens; None without free blocks."""
    states = blocks.states
    num_blocks = -(-(num_past + num_rows) // blocks.block_size)
    free, slot = blocks.unused_blocks(num_blocks), 0 if states is None else states.unused_slot()
    if free is None or slot is None:
        return None
    begins = np.array([0, num_rows]) if states is not None else np.arange(num_rows + 1)
    past_lens = num_past + begins[:-1]
    tables = [free[: -(-(num_past + end) // blocks.block_size)] for _, end in pairwise(begins.tolist())]
    return ForwardBatch(
        token_ids=np.zeros(num_rows, np.int64),
        positions=np.arange(num_past, num_past + num_rows, dtype=np.int64),
        past_lens=past_lens.astype(np.int32),
        subsequence_begins=begins.astype(np.int32),
        block_indices=np.concatenate(tables).astype(np.int32),
        block_indices_begins=np.cumsum([0, *map(len, tables)]).astype(np.int32),
        max_context_len=num_past + num_rows,
        sampled_rows=np.arange(num_rows, dtype=np.int64),
        state_slots=None if states is None else np.array([[0, slot]], np.int32),
    )
