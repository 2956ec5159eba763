"""Measures the costs of steps on the machine while the engine is idle.

Steps of several row counts run on blocks that no sequence has, each count twice in a row, because
the first step of another count costs more. Then come steps over a long context, whose blocks are
written before: never written blocks cost half, because the system maps them all to one page of
zeros. There are a few rounds, and the fastest one counts. Later, every step that only decodes
corrects the costs. Disturbances only make a step slower, so a faster step is believed at once and a
slower step little by little. If steps are much faster than they were when they were measured, other
work disturbed the measurement, and it is repeated when the engine is idle again: the costs of row
counts that no step has would else stay too high.
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
    make_rising,
)
from ouzel.types.engine_info import EngineInfo

logger = logging.getLogger(__name__)

_ROW_COUNTS = (1, 2, 4, 8, 16, 32)
_LONG_CONTEXTS = (1024, 256, 64)  # tokens; the longest that fits into free blocks is used
_APART_COUNTS = (1, 4)  # rows of a sequence as subsequences of their own
_WHOLE_COUNTS = (8, 16)  # rows of a sequence as one subsequence
# precisions in which attention rounds several rows of a sequence differently from one row
_ROUNDING_PRECISIONS = ("bf16", "f16")
_NUM_ROUNDS = 5
_MOST_MEASUREMENTS = 3
_DISTURBED = 0.8  # a measurement is disturbed if later steps take less than this share of its time
_BELIEF_IN_FASTER, _BELIEF_IN_SLOWER = 0.5, 0.05  # weight of a step in the correction


class MeasuredCosts:
    """Measures the costs of steps, one step at a time, and corrects them later."""

    def __init__(
        self, runner: ModelRunner, blocks: BlockManager, known: StepCosts | None = None
    ) -> None:
        """Given costs, `known`, are neither measured nor corrected."""
        self.known = known
        self._measured: StepCosts | None = None  # the costs before corrections
        self._num_measurements = 0
        self._name = runner.info.model_type
        self._measure = partial(measure_steps, runner, blocks)
        self._measurement = self._measure()

    def advance(self) -> bool:
        """Measures one step; returns whether more measurements remain.

        If blocks or slots are lacking, the next call starts again.
        """
        if self.known is not None and not self._was_disturbed():
            return False
        try:
            next(self._measurement)
        except StopIteration as end:
            self._measurement = self._measure()
            self._take(end.value)
            return False
        return True

    def _take(self, costs: StepCosts | None) -> None:
        """Takes the costs of a finished measurement; None if blocks or slots were lacking."""
        if costs is None:
            return
        self.known = self._measured = costs
        self._num_measurements += 1
        logger.info("a step of %s takes %s", self._name, _describe(costs))

    def note(self, num_rows: int, attention_s: float, seconds: float) -> None:
        """Updates the costs from a measured step, if the step before it had the same number of
        rows.
        """
        if self.known is None or self._measured is None:
            return
        ratio = seconds / self.known.estimate(num_rows, attention_s)
        belief = _BELIEF_IN_FASTER if ratio < 1 else _BELIEF_IN_SLOWER
        self.known = self.known.correct(num_rows, 1 + belief * (min(ratio, 2.0) - 1))

    def _was_disturbed(self) -> bool:
        """Tells whether the measurement is to be repeated, because steps are much faster now."""
        if self.known is None or self._measured is None:
            return False
        is_faster = any(
            now_s < _DISTURBED * measured_s
            for now_s, measured_s in zip(self.known.seconds, self._measured.seconds, strict=True)
        )
        return is_faster and self._num_measurements < _MOST_MEASUREMENTS


def _describe(costs: StepCosts) -> str:
    """Describes the costs in a sentence for the log."""
    *most, last = [
        f"{1000 * seconds:.1f} ms for {num_rows} token{'s' * (num_rows > 1)}"
        for num_rows, seconds in zip(costs.num_rows, costs.seconds, strict=True)
    ]
    context_ms = 1000 * 1000 * costs.attention.estimate(1)
    return (
        f"{', '.join(most)} and {last}, and {context_ms:.1f} ms more for each 1,000 tokens of "
        f"a sequence's context"
    )


class _MeasuredStep(msgspec.Struct, frozen=True):
    """The rows, sequences and context of a step whose time is measured."""

    num_rows: int  # rows of all sequences
    num_sequences: int = 1
    num_past: int = 0
    is_apart: bool = False  # each row of a sequence is a subsequence of its own
    is_changed: bool = False  # the step before has another number of rows
    is_sampled: bool = True  # all rows are sampled; else only the last row

    @property
    def num_several(self) -> int:
        return self.num_sequences if self.num_rows > self.num_sequences and not self.is_apart else 0


def measure_steps(
    runner: ModelRunner, blocks: BlockManager
) -> Generator[None, None, StepCosts | None]:
    """Runs one step between two yields; returns None if there are too few free blocks."""
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
    fastest: dict[_MeasuredStep, float] = {}
    for _ in range(_NUM_ROUNDS):
        for step in plan.steps():
            yield
            batch = _batch(blocks, step)
            if batch is None:
                return None
            if step.num_past:
                _write(runner, batch)
            begin = time.perf_counter()
            runner.run(batch)
            seconds = time.perf_counter() - begin
            fastest[step] = min(fastest.get(step, seconds), seconds)
    return plan.costs(fastest)


def _has_room(info: EngineInfo, blocks: BlockManager, num_tokens: int) -> bool:
    return (
        num_tokens <= info.max_model_len
        and blocks.unused_blocks(-(-num_tokens // info.block_size)) is not None
    )


class _Plan(msgspec.Struct, frozen=True):
    """Lists the steps to measure, and computes the costs from their times.

    The counted rows belong to one sequence and go apart. With recurrent states, each row has a
    sequence of its own: the rows of one sequence depend on each other, which costs differently.
    """

    counts: list[int]
    num_past: int  # tokens of a long context
    has_states: bool
    rounds_otherwise: bool  # whether several rows of a sequence round differently from one row

    def steps(self) -> Generator[_MeasuredStep]:
        for count in self.counts:
            yield self._counting(count, is_changed=True)
            yield self._counting(count)
            if count in _APART_COUNTS and not self.has_states:
                yield _MeasuredStep(count, num_past=self.num_past, is_apart=True)
            if count in _WHOLE_COUNTS and (self.has_states or not self.rounds_otherwise):
                yield _MeasuredStep(count, num_past=self.num_past)
        for step in self._several if self.has_states else ():
            yield msgspec.structs.replace(step, is_changed=True)
            yield step
        yield _MeasuredStep(self.counts[-1], is_sampled=False)

    def costs(self, fastest: dict[_MeasuredStep, float]) -> StepCosts:
        same = make_rising([fastest[self._counting(count)] for count in self.counts])
        changed = [fastest[self._counting(count, is_changed=True)] for count in self.counts]
        costs = StepCosts(
            tuple(self.counts),
            tuple(same),
            change_s=max(0.0, median(a - b for a, b in zip(changed, same, strict=True))),
        )
        unsampled = fastest[_MeasuredStep(self.counts[-1], is_sampled=False)]
        row_s = max(0.0, unsampled - same[0]) / (self.counts[-1] - 1)
        costs = msgspec.structs.replace(costs, unsampled_row_s=row_s)
        if self.has_states and self._several:
            several = _compute_several(
                costs.estimate(0), *(fastest[step] for step in self._several)
            )
            costs = msgspec.structs.replace(costs, several=several)
        long = {step: seconds for step, seconds in fastest.items() if step.num_past}
        return msgspec.structs.replace(
            costs, attention=_compute_attention(costs, long, self.num_past)
        )

    @property
    def _several(self) -> tuple[_MeasuredStep, ...]:
        """The steps with several rows in a sequence: two rows, eight rows, four times two rows."""
        if self.counts[-1] >= 8:
            return (_MeasuredStep(2), _MeasuredStep(8), _MeasuredStep(8, 4))
        return ()

    def _counting(self, count: int, *, is_changed: bool = False) -> _MeasuredStep:
        if self.has_states:
            return _MeasuredStep(count, count, is_changed=is_changed)
        return _MeasuredStep(count, is_apart=True, is_changed=is_changed)


def _compute_several(
    nothing_s: float, two_s: float, eight_s: float, four_of_two_s: float
) -> SeveralCosts:
    """Computes the costs of sequences with several rows.

    `nothing_s` is the time of a step without rows; the others are the times of `_Plan._several`.
    """
    row_s = max(0.0, eight_s - two_s) / 6
    each_s = max(0.0, four_of_two_s - eight_s) / 3
    return SeveralCosts(max(0.0, two_s - nothing_s - each_s - 2 * row_s), each_s, row_s)


def _compute_attention(
    costs: StepCosts, long: dict[_MeasuredStep, float], num_past: int
) -> AttentionCosts:
    """Computes the seconds per token of context, from steps over a long and over no context.

    If few were measured, rows go apart.
    """

    def estimate_without_context(step: _MeasuredStep) -> float:
        return costs.estimate_step(
            step.num_rows, step.num_several, step.num_rows if step.num_several else 0
        )

    more = {
        step: max(0.0, seconds - estimate_without_context(step)) / num_past
        for step, seconds in long.items()
    }
    apart = [(step.num_rows, seconds) for step, seconds in more.items() if step.is_apart]
    whole = [(step.num_rows, seconds) for step, seconds in more.items() if not step.is_apart]
    whole_s, whole_row_s = (
        _fit_line(*whole) if len(whole) == len(_WHOLE_COUNTS) else (float("inf"), 0.0)
    )
    if len(apart) < len(_APART_COUNTS):
        one_s = (
            sum(seconds for _, seconds in apart) if apart or not whole else whole_s + whole_row_s
        )
        return AttentionCosts(one_s, one_s, whole_s, whole_row_s)
    before_s, apart_s = _fit_line(*apart)
    return AttentionCosts(before_s + apart_s, apart_s, whole_s, whole_row_s)


def _fit_line(few: tuple[int, float], many: tuple[int, float]) -> tuple[float, float]:
    """Returns intercept and slope of a line through two points, neither below 0."""
    each_s = max(0.0, many[1] - few[1]) / (many[0] - few[0])
    return max(0.0, few[1] - few[0] * each_s), each_s


def _write(runner: ModelRunner, batch: ForwardBatch) -> None:
    """Writes into all blocks of a batch."""
    first, *others = sorted(set(batch.block_indices.tolist()))
    runner.copy_blocks([first] * len(others), others)


def _batch(blocks: BlockManager, step: _MeasuredStep) -> ForwardBatch | None:
    """Makes a batch for a measured step; None without enough free blocks or slots.

    All sequences have the same blocks, because nobody reads their content.
    """
    states, num_past = blocks.states, step.num_past
    num_own = step.num_rows // step.num_sequences
    free = blocks.unused_blocks(-(-(num_past + num_own) // blocks.block_size))
    slots = [] if states is None else states.unused_slots(step.num_sequences)
    if free is None or (states is not None and len(slots) < step.num_sequences):
        return None
    begins = range(num_own + 1) if step.is_apart else (0, num_own)
    own = [(free, num_past + begin, [0] * (end - begin)) for begin, end in pairwise(begins)]
    rows = np.arange(step.num_rows, dtype=np.int64)
    batch = build_flat_batch(
        own * step.num_sequences, rows if step.is_sampled else rows[-1:], blocks.block_size
    )
    if states is None:
        return batch
    return replace(batch, state_slots=np.array([(0, slot) for slot in slots], np.int32))
