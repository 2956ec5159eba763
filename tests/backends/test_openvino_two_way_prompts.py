"""Compares PaliGemma, which reads prompts in both directions, with transformers in float32.

test_openvino_vision.py compares its features and its answers.
"""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.kernels.library import KernelsMissing, find_kernels
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import KvCacheDtype
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.engine.state.two_way_tokens import CAUSAL
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest, SpeculationParams
from tests.backends.conftest import Load, skip_without_kernels
from tests.backends.forward import relative_error
from tests.backends.vision_golden import LimitedRunner, VisionGolden, read_vision_golden
from tests.engine.drafting import FREE
from tests.engine.requests import run, run_alone

BLOCK_SIZE = 32
needs_kernels = pytest.mark.skipif(
    isinstance(find_kernels(), KernelsMissing), reason="ouzel-kernels cannot run here"
)


@pytest.fixture(scope="module", params=["paligemma", "paligemma2"])
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    skip_without_kernels(request.param)
    return read_vision_golden(request.param)


class RecordingRunner(LimitedRunner):
    """Computes the logits of all rows, and keeps the logits of each subsequence."""

    def __init__(self, runner: OpenVINORunner, num_blocks: int | None = None) -> None:
        super().__init__(runner, runner.info.max_num_batched_tokens)
        self.info = msgspec.structs.replace(
            runner.info, num_blocks=num_blocks or runner.info.num_blocks
        )
        self._run = runner.run
        self.run = self._record
        # first token, tokens and logits of each subsequence of each step
        self.rows: list[tuple[int, list[int], NDArray[np.float32]]] = []
        self.nums_subsequences: list[int] = []  # one number for each step

    def _record(self, batch: ForwardBatch) -> NDArray[np.float32]:
        num_tokens = len(batch.token_ids)
        logits = self._run(replace(batch, sampled_rows=np.arange(num_tokens))).copy()
        begins = batch.subsequence_begins.tolist()
        self.nums_subsequences.append(len(batch.past_lens))
        for past, begin, end in zip(batch.past_lens.tolist(), begins, begins[1:], strict=False):
            self.rows.append((past, batch.token_ids[begin:end].tolist(), logits[begin:end]))
        return logits[batch.sampled_rows]


def make_recorder(golden: VisionGolden, load: Load, **options: int) -> RecordingRunner:
    runner = load(golden.directory)
    assert isinstance(runner, OpenVINORunner)
    return RecordingRunner(runner, **options)


def test_all_logits_of_prompts_in_one_batch_equal_transformers(
    golden: VisionGolden, load: Load
) -> None:
    recorder = make_recorder(golden, load)
    engine = EngineCore(recorder, prefix_caching=False)
    run_alone(engine, golden.request(4, max_tokens=1))  # encodes all pictures
    recorder.rows.clear()
    recorder.nums_subsequences.clear()

    run(engine, [golden.request(count, max_tokens=1) for count in (1, 2, 4)])

    assert recorder.nums_subsequences == [3]
    assert len({past for past, _, _ in recorder.rows}) == 1
    for count in (1, 2, 4):
        [logits] = [rows for _, ids, rows in recorder.rows if ids == golden.prompt(count)]
        assert relative_error(logits, golden.arrays[f"logits.{count}"]) < 1e-5


def test_the_rest_of_a_cached_prompt_equals_transformers(golden: VisionGolden, load: Load) -> None:
    recorder = make_recorder(golden, load)
    engine = EngineCore(recorder)
    run_alone(engine, golden.request(4, max_tokens=1))
    recorder.rows.clear()

    result = run_alone(engine, golden.request(4, max_tokens=1))[0]

    [(past, token_ids, logits)] = recorder.rows
    assert past == result.final.num_cached_tokens >= 2 * BLOCK_SIZE
    assert token_ids == golden.prompt(4)[past:]
    assert relative_error(logits, golden.arrays["logits.4"][past:]) < 1e-5


def test_a_prompt_with_the_same_beginning_finds_nothing(golden: VisionGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory))
    longer = golden.request(4, max_tokens=1)
    longer = msgspec.structs.replace(longer, prompt_token_ids=[*longer.prompt_token_ids, 100])
    run_alone(engine, longer)

    result = run_alone(engine, golden.request(4))[0]

    assert result.final.num_cached_tokens == 0
    assert result.token_ids == golden.greedy(4)


def test_prompts_longer_than_a_step_and_preemption_change_no_answer(
    golden: VisionGolden, load: Load
) -> None:
    """Preempted sequences compute their prompt and the tokens of their answer in one chunk."""
    recorder = make_recorder(golden, load, num_blocks=8)
    recorder.info = msgspec.structs.replace(recorder.info, max_num_batched_tokens=8, max_num_seqs=4)
    engine = EngineCore(recorder, prefix_caching=False)
    requests = [golden.request(count) for count in (1, 2, 1, 2)]

    results = run(engine, requests)

    assert engine.stats().num_preemptions
    firsts = [ids for past, ids, _ in recorder.rows if past == 0]
    assert len(firsts) > len(requests)
    for token_ids in firsts:
        assert any(token_ids[: len(each)] == each for each in map(golden.prompt, (1, 2)))
    for request, count in zip(requests, (1, 2, 1, 2), strict=True):
        assert results[request.request_id, 0].token_ids == golden.greedy(count)


def test_choices_of_a_prompt_are_greedy_alike(golden: VisionGolden, load: Load) -> None:
    results = run_alone(EngineCore(load(golden.directory)), golden.request(2, n=3))

    assert [each.token_ids for each in results] == [golden.greedy(2)] * 3


def test_a_search_with_one_beam_is_greedy(golden: VisionGolden, load: Load) -> None:
    request = golden.request(2, num_logprobs=0, beam_search=BeamSearchParams(width=1))

    assert run_alone(EngineCore(load(golden.directory)), request)[0].token_ids == golden.greedy(2)


def test_a_beam_search_does_not_change_in_company(golden: VisionGolden, load: Load) -> None:
    def request() -> EngineRequest:
        return golden.request(
            2, n=2, max_tokens=12, num_logprobs=0, beam_search=BeamSearchParams(width=3)
        )

    alone = run_alone(EngineCore(load(golden.directory), prefix_caching=False), request())
    engine = EngineCore(load(golden.directory))
    requests = [golden.request(1), request(), golden.request(4)]

    results = run(engine, requests)

    for index in range(2):
        beam = results[requests[1].request_id, index]
        assert beam.token_ids == alone[index].token_ids
    assert results[requests[2].request_id, 0].token_ids == golden.greedy(4)


def test_guessed_tokens_change_no_answer(golden: VisionGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory), speculation=Speculation(costs=FREE))
    guess = SpeculationParams(predicted_token_ids=golden.greedy(2))
    request = msgspec.structs.replace(golden.request(2), speculation=guess)

    assert run_alone(engine, request)[0].token_ids == golden.greedy(2)
    assert engine.stats().num_accepted_tokens > 10


class CausalRunner(RecordingRunner):
    """Computes prompts as a model that reads them from left to right."""

    def _record(self, batch: ForwardBatch) -> NDArray[np.float32]:
        begins = np.full(len(batch.token_ids), CAUSAL, np.int32)
        return super()._record(replace(batch, two_way_begins=begins))


# Measured: 0.116 and 0.025.
@needs_kernels
@pytest.mark.parametrize("kv_cache_dtype", ["f16", "u8"])
def test_logits_in_the_serving_precision_are_near_transformers(
    golden: VisionGolden, load: Load, kv_cache_dtype: KvCacheDtype
) -> None:
    runner = load(golden.directory, "int8", "auto", kv_cache_dtype)
    assert isinstance(runner, OpenVINORunner)
    errors = []
    for recorder in (RecordingRunner(runner), CausalRunner(runner)):
        run_alone(EngineCore(recorder), golden.request(4, max_tokens=1))
        [(_, _, logits)] = recorder.rows
        errors.append(relative_error(logits, golden.arrays["logits.4"]))

    assert errors[0] < 0.15 < errors[1]
