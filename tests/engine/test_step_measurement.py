from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.cache.state_slots import state_slots
from ouzel.engine.speculation.step_measurement import MeasuredCosts
from ouzel.types.engine_info import EngineInfo

MARK = 5


def make_blocks(info: EngineInfo) -> BlockManager:
    states = state_slots(info, None)
    return BlockManager(
        num_blocks=info.num_blocks, block_size=info.block_size, prefix_caching=True, states=states
    )


def make_runner(max_num_batched_tokens: int = 64) -> FakeRunner:
    return FakeRunner(
        num_blocks=400, max_model_len=1200, max_num_batched_tokens=max_num_batched_tokens
    )


def test_each_number_of_rows_is_measured_after_itself_and_after_another() -> None:
    runner = make_runner()
    blocks = make_blocks(runner.info)
    costs = MeasuredCosts(runner, blocks)
    while costs.advance():
        pass
    known = costs.known
    assert known is not None
    assert known.num_rows == (1, 2, 4, 8, 16, 32)
    assert known.change_s >= 0
    assert list(known.seconds) == sorted(known.seconds)
    assert (
        min(
            known.attention.first_s,
            known.attention.apart_s,
            known.attention.whole_s,
            known.attention.whole_row_s,
        )
        >= 0
    )
    assert known.unsampled_row_s is not None and known.unsampled_row_s >= 0
    counts = [len(batch.token_ids) for batch in select_sampled(runner) if batch.past_lens[0] == 0]
    changed = sum(a != b for a, b in pairwise(counts))
    assert changed == len(counts) // 2 - 1, "two of each count, one after the other"
    long = {
        (len(batch.token_ids), len(batch.past_lens))
        for batch in runner.batches
        if batch.past_lens[0] > 0
    }
    assert long == {(1, 1), (4, 4), (8, 1), (16, 1)}, "rows apart, and as a whole"
    assert blocks.num_used_blocks == 0


def select_sampled(runner: FakeRunner) -> list[ForwardBatch]:
    """Returns the batches that sample every row."""
    return [batch for batch in runner.batches if len(batch.sampled_rows) == len(batch.token_ids)]


class ForgetfulRunner(FakeRunner):
    """A runner that allows a state behind any tokens."""

    def _advance_state(
        self, slots: NDArray[np.int32], i: int, context: NDArray[np.int64], past_len: int
    ) -> None:
        assert slots[i, 1] not in np.delete(slots, i, axis=0)


def test_of_hybrids_sequences_of_one_row_and_of_several_are_measured() -> None:
    options: dict[str, Any] = {
        "num_blocks": 400,
        "max_model_len": 1200,
        "max_num_batched_tokens": 64,
        "max_num_seqs": 32,
    }
    runner = ForgetfulRunner(num_kept_states=8, **options)
    costs = MeasuredCosts(runner, make_blocks(runner.info))
    while costs.advance():
        pass
    assert costs.known is not None
    assert costs.known.num_rows == (1, 2, 4, 8, 16, 32)
    several = costs.known.several
    assert several is not None
    assert min(several.first_s, several.each_s, several.row_s) >= 0
    short = [batch for batch in select_sampled(runner) if batch.past_lens[0] == 0]
    rows = {tuple(np.diff(batch.subsequence_begins).tolist()) for batch in short}
    assert rows == {*((1,) * count for count in (1, 2, 4, 8, 16, 32)), (2,), (8,), (2, 2, 2, 2)}


class WriteCheckingRunner(FakeRunner):
    """A runner that knows which blocks were written before a batch ran."""

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        if batch.past_lens[0] > 0:
            assert np.all(self._slots[np.unique(batch.block_indices)[1:]] == MARK)
        return super().run(batch)

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._slots[sources] = MARK
        super().copy_blocks(sources, destinations)


def test_contexts_are_written_before_steps_read_them() -> None:
    runner = WriteCheckingRunner(num_blocks=400, max_model_len=1200, max_num_batched_tokens=64)
    costs = MeasuredCosts(runner, make_blocks(runner.info))
    while costs.advance():
        pass
    assert any(batch.past_lens[0] > 0 for batch in runner.batches)


def test_rows_stay_apart_if_several_round_differently_from_one() -> None:
    runner = make_runner()
    runner.info = msgspec.structs.replace(runner.info, precision="bf16")
    costs = MeasuredCosts(runner, make_blocks(runner.info))
    while costs.advance():
        pass
    assert all(len(batch.past_lens) == len(batch.token_ids) for batch in select_sampled(runner))
    assert costs.known is not None
    assert costs.known.attention.is_apart(64)


@pytest.mark.parametrize("max_num_batched_tokens", [1, 16])
def test_if_few_rows_fit_few_are_measured(max_num_batched_tokens: int) -> None:
    runner = make_runner(max_num_batched_tokens=max_num_batched_tokens)
    costs = MeasuredCosts(runner, make_blocks(runner.info))
    while costs.advance():
        pass
    assert all(len(batch.token_ids) <= max_num_batched_tokens for batch in runner.batches)
    assert (costs.known is None) == (max_num_batched_tokens == 1)


def test_with_few_blocks_a_shorter_context_is_measured_and_without_any_none_for_now() -> None:
    runner = make_runner()
    blocks = make_blocks(runner.info)
    costs = MeasuredCosts(runner, blocks)
    blocks._free, taken = blocks._free[:10], blocks._free[10:]
    has_more, first = costs.advance(), costs.known
    assert (has_more, first) == (False, None)
    blocks._free += taken[:80]  # 4 tokens each
    while costs.advance():
        pass
    assert costs.known is not None
    assert max(int(batch.past_lens[0]) for batch in runner.batches) == 256


class TimedRunner(FakeRunner):
    """A runner whose steps take a fixed time on a clock that the test has."""

    step_s = 1.0
    now_s = 0.0

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        self.now_s += self.step_s
        return super().run(batch)


def test_a_disturbed_measurement_is_repeated_when_later_steps_are_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = TimedRunner(num_blocks=400, max_model_len=1200, max_num_batched_tokens=64)
    monkeypatch.setattr("time.perf_counter", lambda: runner.now_s)
    costs = MeasuredCosts(runner, make_blocks(runner.info))

    def measure() -> int:
        num_before = len(runner.batches)
        while costs.advance():
            pass
        return len(runner.batches) - num_before

    def note(seconds: float) -> None:
        for _ in range(20):
            costs.note(1, 0.0, seconds)

    assert measure() > 0
    note(0.9)
    assert measure() == 0, "a little faster is no disturbance"
    runner.step_s = 0.5
    note(0.5)
    assert measure() > 0
    assert costs.known is not None and costs.known.seconds == (0.5,) * 6, "of all row counts"
    note(1.0)
    assert measure() == 0, "slower steps only correct the costs"
    runner.step_s = 0.2
    note(0.2)
    assert measure() > 0
    note(0.01)
    assert measure() == 0, "three measurements are enough"
