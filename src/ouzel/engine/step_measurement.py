"""The costs of steps are measured on the machine that runs them, in moments in which nothing is asked.

Steps of several row counts run on blocks that nobody has, two of each behind one another, since the first one of
another count costs more; then some over a long context, whose blocks are written before: those that never were cost
half, since the system shows one page of zeros for all of them. This is done in a few rounds, and of each the fastest
one counts. Later every step that only decodes says how far that was right: what disturbs a step makes it slower, so a
faster one is believed at once and a slower one little by little.
"""

import logging
import time
from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from statistics import median

import msgspec
import numpy as np

from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.batch import batch_of
from ouzel.engine.block_manager import BlockManager
from ouzel.engine.speculation.step_costs import AttentionCosts, StepCosts, rising

logger = logging.getLogger(__name__)

_ROW_COUNTS = (1, 2, 4, 8, 16, 32)
_LONG_CONTEXT = 1024  # tokens; less where there are fewer blocks
_APART_COUNTS = (1, 4)  # rows of a sequence that are subsequences of their own
_WHOLE_COUNTS = (8, 16)  # rows that are one
_ROUNDING_PRECISIONS = ("bf16", "f16")  # in which attention of several rows rounds otherwise than of one
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

    def note(self, num_rows: int, attention_s: float, seconds: float) -> None:
        """Corrects them by what a step took behind one of as many rows."""
        if self.known is None or self._is_given:
            return
        ratio = seconds / self.known.of(num_rows, attention_s)
        belief = _BELIEF_IN_FASTER if ratio < 1 else _BELIEF_IN_SLOWER
        self.known = self.known.corrected(num_rows, 1 + belief * (min(ratio, 2.0) - 1))


class _Measured(msgspec.Struct, frozen=True):
    """A step that is measured."""

    num_rows: int
    num_past: int = 0
    is_apart: bool = True
    is_changed: bool = False  # the step before has another number of rows


def measurement(runner: ModelRunner, blocks: BlockManager) -> Generator[None, None, StepCosts | None]:
    """Runs a step between any two yields. Returns None where there are too few blocks to measure on."""
    info = runner.info
    counts = [num for num in _ROW_COUNTS if num <= min(info.max_model_len, info.max_num_batched_tokens)]
    longest = min(info.max_model_len, (info.num_blocks - 1) * info.block_size) - counts[-1]
    if len(counts) < 2 or longest < 1:
        return None
    can_part = blocks.states is None
    can_join = not can_part or info.precision not in _ROUNDING_PRECISIONS
    num_past = min(_LONG_CONTEXT, longest)
    fastest: dict[_Measured, float] = {}
    for _ in range(_NUM_ROUNDS):
        for measured in _steps(counts, num_past, can_part=can_part, can_join=can_join):
            yield
            batch = _batch(blocks, measured)
            if batch is None:
                return None
            if measured.num_past:
                _write(runner, batch)
            begin = time.perf_counter()
            runner.run(batch)
            seconds = time.perf_counter() - begin
            fastest[measured] = min(fastest.get(measured, seconds), seconds)
    same = rising([fastest[_Measured(count, is_apart=can_part)] for count in counts])
    changed = [fastest[_Measured(count, is_apart=can_part, is_changed=True)] for count in counts]
    long = {step: seconds for step, seconds in fastest.items() if step.num_past}
    costs = StepCosts(
        tuple(counts), tuple(same), change_s=max(0.0, median(a - b for a, b in zip(changed, same, strict=True)))
    )
    return msgspec.structs.replace(costs, attention=_attention(costs, long, num_past))


def _steps(counts: list[int], num_past: int, *, can_part: bool, can_join: bool) -> Generator[_Measured]:
    for count in counts:
        yield _Measured(count, is_apart=can_part, is_changed=True)
        yield _Measured(count, is_apart=can_part)
        if count in _APART_COUNTS and can_part:
            yield _Measured(count, num_past)
        if count in _WHOLE_COUNTS and can_join:
            yield _Measured(count, num_past, is_apart=False)


def _attention(costs: StepCosts, long: dict[_Measured, float], num_past: int) -> AttentionCosts:
    """Takes what steps over a long context took beyond those over none; where few were measured, rows go apart."""
    more = {step: max(0.0, seconds - costs.of(step.num_rows)) / num_past for step, seconds in long.items()}
    apart = [(step.num_rows, seconds) for step, seconds in more.items() if step.is_apart]
    whole = [(step.num_rows, seconds) for step, seconds in more.items() if not step.is_apart]
    whole_s, whole_row_s = _line(*whole) if len(whole) == len(_WHOLE_COUNTS) else (float("inf"), 0.0)
    if len(apart) < len(_APART_COUNTS):
        one_s = sum(seconds for _, seconds in apart) if apart or not whole else whole_s + whole_row_s
        return AttentionCosts(one_s, one_s, whole_s, whole_row_s)
    before_s, apart_s = _line(*apart)
    return AttentionCosts(before_s + apart_s, apart_s, whole_s, whole_row_s)


def _line(few: tuple[int, float], many: tuple[int, float]) -> tuple[float, float]:
    """Returns the seconds that no rows would take, and those of each, neither below 0."""
    row_s = max(0.0, many[1] - few[1]) / (many[0] - few[0])
    return max(0.0, few[1] - few[0] * row_s), row_s


def _write(runner: ModelRunner, batch: ForwardBatch) -> None:
    """Writes into the blocks of a batch."""
    first, *others = sorted(set(batch.block_indices.tolist()))
    runner.copy_blocks([first] * len(others), others)


def _batch(blocks: BlockManager, measured: _Measured) -> ForwardBatch | None:
    """Makes rows of one sequence as `build_batch` does for one that proposes tokens; None without free blocks."""
    states, num_rows, num_past = blocks.states, measured.num_rows, measured.num_past
    num_blocks = -(-(num_past + num_rows) // blocks.block_size)
    free, slot = blocks.unused_blocks(num_blocks), 0 if states is None else states.unused_slot()
    if free is None or slot is None:
        return None
    begins = range(num_rows + 1) if measured.is_apart else (0, num_rows)
    spans = [(free, num_past + begin, [0] * (end - begin)) for begin, end in pairwise(begins)]
    batch = batch_of(spans, np.arange(num_rows, dtype=np.int64), blocks.block_size)
    return batch if states is None else replace(batch, state_slots=np.array([[0, slot]], np.int32))
