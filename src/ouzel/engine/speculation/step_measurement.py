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
from functools import partial
from itertools import pairwise
from statistics import median

import msgspec
import numpy as np

from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.engine.speculation.rules.step_costs import (
    AttentionCosts,
    SeveralCosts,
    StepCosts,
    rising,
)
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

_ROW_COUNTS = (1, 2, 4, 8, 16, 32)
_LONG_CONTEXTS = (1024, 256, 64)  # tokens: the longest for which there are blocks
_APART_COUNTS = (1, 4)  # rows of a sequence that are subsequences of their own
_WHOLE_COUNTS = (8, 16)  # rows that are one
_ROUNDING_PRECISIONS = (
    "bf16",
    "f16",
)  # in which attention of several rows rounds otherwise than of one
_NUM_ROUNDS = 5
_BELIEF_IN_FASTER, _BELIEF_IN_SLOWER = 0.5, 0.05  # of 1, in one step


class MeasuredCosts:
    """Measures the costs of steps, one step at a time, and corrects them later."""

    def __init__(
        self, runner: ModelRunner, blocks: BlockManager, known: StepCosts | None = None
    ) -> None:
        self.known = known
        self._is_given = known is not None
        self._name = runner.info.model_type
        self._measure = partial(measurement, runner, blocks)
        self._measurement = self._measure()

    def advance(self) -> bool:
        """Takes one of the steps that tell what steps cost; returns whether there are more.

        Where blocks or slots lack just now, it begins anew the next time.
        """
        if self.known is not None:
            return False
        try:
            next(self._measurement)
        except StopIteration as end:
            self._measurement, self.known = self._measure(), end.value
            if self.known is not None:
                logger.info("a step of %s takes %s", self._name, _described(self.known))
            return False
        return True

    def note(self, num_rows: int, attention_s: float, seconds: float) -> None:
        """Updates the costs from a measured step, if the step before it had the same number of rows."""
        if self.known is None or self._is_given:
            return
        ratio = seconds / self.known.of(num_rows, attention_s)
        belief = _BELIEF_IN_FASTER if ratio < 1 else _BELIEF_IN_SLOWER
        self.known = self.known.corrected(num_rows, 1 + belief * (min(ratio, 2.0) - 1))


def _described(costs: StepCosts) -> str:
    """Describes the costs in a sentence for the log."""
    *most, last = [
        f"{1000 * seconds:.1f} ms for {num_rows} token{'s' * (num_rows > 1)}"
        for num_rows, seconds in zip(costs.num_rows, costs.seconds, strict=True)
    ]
    context_ms = 1000 * 1000 * costs.attention.of(1)
    return f"{', '.join(most)} and {last}, and {context_ms:.1f} ms more for each 1,000 tokens of a sequence's context"


class _Measured(msgspec.Struct, frozen=True):
    """A step that is measured."""

    num_rows: int  # of all sequences
    num_sequences: int = 1
    num_past: int = 0
    is_apart: bool = False  # rows of a sequence are subsequences of their own
    is_changed: bool = False  # the step before has another number of rows
    is_sampled: bool = True  # else its last row alone

    @property
    def num_several(self) -> int:
        return self.num_sequences if self.num_rows > self.num_sequences and not self.is_apart else 0


def measurement(
    runner: ModelRunner, blocks: BlockManager
) -> Generator[None, None, StepCosts | None]:
    """Runs a step between any two yields. Returns None where there are too few blocks to measure on."""
    info = runner.info
    num_slots = None if blocks.states is None else len(blocks.states.unused_slots(_ROW_COUNTS[-1]))
    most = min(
        info.max_model_len,
        info.max_num_batched_tokens,
        _ROW_COUNTS[-1] if num_slots is None else num_slots,
    )
    counts = [num for num in _ROW_COUNTS if num <= most]
    longest = next(
        (num for num in _LONG_CONTEXTS if _has_room(info, blocks, num + _ROW_COUNTS[-1])), None
    )
    if len(counts) < 2 or longest is None:
        return None
    plan = _Plan(counts, longest, num_slots is not None, info.precision in _ROUNDING_PRECISIONS)
    fastest: dict[_Measured, float] = {}
    for _ in range(_NUM_ROUNDS):
        for measured in plan.steps():
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
    return plan.costs(fastest)


def _has_room(info: EngineInfo, blocks: BlockManager, num_tokens: int) -> bool:
    return (
        num_tokens <= info.max_model_len
        and blocks.unused_blocks(-(-num_tokens // info.block_size)) is not None
    )


class _Plan(msgspec.Struct, frozen=True):
    """Which steps are measured, and what they come to.

    Rows that count are of one sequence and apart, or where that has a state of a sequence each: its rows follow one
    another then, which costs otherwise.
    """

    counts: list[int]
    num_past: int  # tokens of a long context
    has_states: bool
    rounds_otherwise: bool  # several rows of a sequence, than one

    def steps(self) -> Generator[_Measured]:
        for count in self.counts:
            yield self._counting(count, is_changed=True)
            yield self._counting(count)
            if count in _APART_COUNTS and not self.has_states:
                yield _Measured(count, num_past=self.num_past, is_apart=True)
            if count in _WHOLE_COUNTS and (self.has_states or not self.rounds_otherwise):
                yield _Measured(count, num_past=self.num_past)
        for step in self._several if self.has_states else ():
            yield msgspec.structs.replace(step, is_changed=True)
            yield step
        yield _Measured(self.counts[-1], is_sampled=False)

    def costs(self, fastest: dict[_Measured, float]) -> StepCosts:
        same = rising([fastest[self._counting(count)] for count in self.counts])
        changed = [fastest[self._counting(count, is_changed=True)] for count in self.counts]
        costs = StepCosts(
            tuple(self.counts),
            tuple(same),
            change_s=max(0.0, median(a - b for a, b in zip(changed, same, strict=True))),
        )
        unsampled = fastest[_Measured(self.counts[-1], is_sampled=False)]
        row_s = max(0.0, unsampled - same[0]) / (self.counts[-1] - 1)
        costs = msgspec.structs.replace(costs, unsampled_row_s=row_s)
        if self.has_states and self._several:
            several = _several_costs(costs.of(0), *(fastest[step] for step in self._several))
            costs = msgspec.structs.replace(costs, several=several)
        long = {step: seconds for step, seconds in fastest.items() if step.num_past}
        return msgspec.structs.replace(costs, attention=_attention(costs, long, self.num_past))

    @property
    def _several(self) -> tuple[_Measured, ...]:
        """Steps of two rows, of eight, and of eight of four sequences."""
        return (_Measured(2), _Measured(8), _Measured(8, 4)) if self.counts[-1] >= 8 else ()

    def _counting(self, count: int, *, is_changed: bool = False) -> _Measured:
        if self.has_states:
            return _Measured(count, count, is_changed=is_changed)
        return _Measured(count, is_apart=True, is_changed=is_changed)


def _several_costs(
    nothing_s: float, two_s: float, eight_s: float, four_of_two_s: float
) -> SeveralCosts:
    """Takes what a step without rows takes, and those of `_Plan._several`."""
    row_s = max(0.0, eight_s - two_s) / 6
    each_s = max(0.0, four_of_two_s - eight_s) / 3
    return SeveralCosts(max(0.0, two_s - nothing_s - each_s - 2 * row_s), each_s, row_s)


def _attention(costs: StepCosts, long: dict[_Measured, float], num_past: int) -> AttentionCosts:
    """Takes what steps over a long context took beyond those over none; where few were measured, rows go apart."""

    def of_none(step: _Measured) -> float:
        return costs.of_step(
            step.num_rows, step.num_several, step.num_rows if step.num_several else 0
        )

    more = {step: max(0.0, seconds - of_none(step)) / num_past for step, seconds in long.items()}
    apart = [(step.num_rows, seconds) for step, seconds in more.items() if step.is_apart]
    whole = [(step.num_rows, seconds) for step, seconds in more.items() if not step.is_apart]
    whole_s, whole_row_s = (
        _line(*whole) if len(whole) == len(_WHOLE_COUNTS) else (float("inf"), 0.0)
    )
    if len(apart) < len(_APART_COUNTS):
        one_s = (
            sum(seconds for _, seconds in apart) if apart or not whole else whole_s + whole_row_s
        )
        return AttentionCosts(one_s, one_s, whole_s, whole_row_s)
    before_s, apart_s = _line(*apart)
    return AttentionCosts(before_s + apart_s, apart_s, whole_s, whole_row_s)


def _line(few: tuple[int, float], many: tuple[int, float]) -> tuple[float, float]:
    """Returns the seconds that none would take, and those of each, neither below 0."""
    each_s = max(0.0, many[1] - few[1]) / (many[0] - few[0])
    return max(0.0, few[1] - few[0] * each_s), each_s


def _write(runner: ModelRunner, batch: ForwardBatch) -> None:
    """Writes into the blocks of a batch."""
    first, *others = sorted(set(batch.block_indices.tolist()))
    runner.copy_blocks([first] * len(others), others)


def _batch(blocks: BlockManager, measured: _Measured) -> ForwardBatch | None:
    """Makes rows as `build_batch` does for sequences that propose tokens; None without free blocks or slots.

    All have the same blocks: what they write nobody reads.
    """
    states, num_past = blocks.states, measured.num_past
    num_own = measured.num_rows // measured.num_sequences
    free = blocks.unused_blocks(-(-(num_past + num_own) // blocks.block_size))
    slots = [] if states is None else states.unused_slots(measured.num_sequences)
    if free is None or (states is not None and len(slots) < measured.num_sequences):
        return None
    begins = range(num_own + 1) if measured.is_apart else (0, num_own)
    own = [(free, num_past + begin, [0] * (end - begin)) for begin, end in pairwise(begins)]
    rows = np.arange(measured.num_rows, dtype=np.int64)
    batch = build_flat_batch(
        own * measured.num_sequences, rows if measured.is_sampled else rows[-1:], blocks.block_size
    )
    return (
        batch
        if states is None
        else replace(batch, state_slots=np.array([(0, slot) for slot in slots], np.int32))
    )
