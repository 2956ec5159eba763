"""Compares prediction layers of models that see with transformers' own layers.

training/golden/make_seeing_prediction.py wrote the checkpoints.
"""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.engine.state.prompt_images import PromptImages
from ouzel.types.engine_info import EngineInfo
from tests.backends.vision_golden import VisionGolden, encode_image
from tests.engine.drafting import FREE_PREDICTION
from tests.engine.requests import run, run_alone

PREDICTING = Path(__file__).parent / "golden_seeing_prediction"
BLOCKS = list(range(8))


@pytest.fixture(scope="module", params=["qwen3_5", "glm_ocr"])
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    directory = PREDICTING / str(request.param)
    with np.load(directory / "golden.npz") as arrays:
        return VisionGolden(directory, dict(arrays))


@pytest.fixture(scope="module")
def runner(golden: VisionGolden, cache_dir: Path) -> OpenVINORunner:
    runner = create_runner(
        ModelConfig(model=str(golden.directory), cache_dir=str(cache_dir), weights="f32", mtp=True),
        EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02),
    )
    assert isinstance(runner, OpenVINORunner)
    return runner


class RecordingLayer:
    """A prediction layer that keeps its batches and results."""

    def __init__(self, runner: OpenVINORunner) -> None:
        assert runner.prediction is not None
        self._layer = runner.prediction
        self.info: EngineInfo = self._layer.info
        self.batches: list[ForwardBatch] = []
        self.logits: list[NDArray[np.float32]] = []
        self.copy_blocks, self.close = self._layer.copy_blocks, self._layer.close

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        return self._layer.hidden_rows

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = self._layer.run(batch)
        if batch.hidden_rows is not None:
            self.batches.append(batch)
            self.logits.append(logits.copy())
        return logits

    def find_draft(self, begin: int = 0) -> int:
        """Returns the first batch from `begin` on that made logits."""
        return next(place for place in range(begin, len(self.logits)) if self.logits[place].size)


class PredictingRunner:
    """A runner with a recording layer, which computes at most `num_tokens` tokens in a step."""

    def __init__(
        self, runner: OpenVINORunner, num_tokens: int = 512, num_blocks: int | None = None
    ) -> None:
        self._runner = runner
        self.info = msgspec.structs.replace(
            runner.info,
            max_num_seqs=4,
            max_num_batched_tokens=num_tokens,
            num_blocks=num_blocks or runner.info.num_blocks,
        )
        self.prediction = RecordingLayer(runner)
        self.run, self.encode = runner.run, runner.encode
        self.copy_blocks, self.close = runner.copy_blocks, runner.close

    @property
    def hidden_rows(self) -> NDArray[np.float32]:
        return self._runner.hidden_rows


def make_engine(runner: PredictingRunner, *, prefix_caching: bool = True) -> EngineCore:
    return EngineCore(runner, speculation=FREE_PREDICTION, prefix_caching=prefix_caching)


@pytest.mark.parametrize("count", [1, 2])
def test_logits_of_entries_equal_transformers(
    golden: VisionGolden, runner: OpenVINORunner, count: int
) -> None:
    prompt, images = golden.prompt(count), golden.images(count)
    places = PromptImages(images, len(prompt))
    features = np.concatenate([encode_image(runner, image) for image in images], axis=1)
    tokens = np.concatenate([tokens for _, tokens, _ in places.rows_between(0, len(prompt))])
    batch = build_flat_batch([(BLOCKS, 0, prompt)], np.arange(len(prompt)), runner.info.block_size)
    positions = places.positions(0, len(prompt) + 4)
    assert positions is not None
    slots = np.array([[0, 1]], np.int32) if runner.info.num_state_slots else None
    seeing = replace(
        batch,
        state_slots=slots,
        positions=positions[:, : len(prompt)],
        image_rows=tokens,
        image_features=features,
    )
    logits = runner.run(seeing)
    np.testing.assert_allclose(logits, golden.arrays[f"logits.{count}"], atol=2e-3)
    np.testing.assert_allclose(runner.hidden_rows, golden.arrays[f"hidden.{count}"], atol=2e-3)
    entries = replace(
        seeing,
        token_ids=np.array([*prompt[1:], golden.greedy(count)[0]]),
        image_rows=tokens - 1,
        state_slots=None,
        hidden_rows=runner.hidden_rows.copy(),
    )
    assert runner.prediction is not None
    predicted = runner.prediction.run(entries)
    np.testing.assert_allclose(predicted, golden.arrays[f"prediction_logits.{count}"], atol=2e-3)


@pytest.mark.parametrize("num_tokens", [512, 7])
@pytest.mark.parametrize("count", [1, 2])
def test_drafts_for_a_prompt_with_images_equal_transformers(
    golden: VisionGolden, runner: OpenVINORunner, count: int, num_tokens: int
) -> None:
    """The engine makes the entries of the prompt, in one piece or in chunks through the images."""
    predicting = PredictingRunner(runner, num_tokens)
    engine = make_engine(predicting, prefix_caching=False)

    result = run_alone(engine, golden.request(count))[0]

    assert result.token_ids == golden.greedy(count)
    assert result.final.num_proposed_tokens > 10
    first_draft = predicting.prediction.find_draft()
    chained = np.concatenate(predicting.prediction.logits[first_draft : first_draft + 4])
    np.testing.assert_allclose(chained, golden.arrays[f"chained_logits.{count}"], atol=2e-3)
    positions = np.concatenate(
        [batch.positions for batch in predicting.prediction.batches[:first_draft]], axis=1
    )
    own = PromptImages(golden.images(count), len(golden.prompt(count))).positions(
        0, len(golden.prompt(count))
    )
    assert own is not None
    assert np.array_equal(positions, own[:, : positions.shape[1]])


def test_entries_from_the_cache_serve_another_request_with_the_image(
    golden: VisionGolden, runner: OpenVINORunner
) -> None:
    predicting = PredictingRunner(runner)
    engine = make_engine(predicting)
    assert run_alone(engine, golden.request(2))[0].token_ids == golden.greedy(2)
    num_batches = len(predicting.prediction.batches)

    again = run_alone(engine, golden.request(2))[0]

    assert again.token_ids == golden.greedy(2)
    assert again.final.num_cached_tokens > 0
    new = predicting.prediction.batches[num_batches:]
    assert min(batch.past_lens.min() for batch in new) >= again.final.num_cached_tokens - 1
    # the row attends to the entries of the first request
    first_draft = predicting.prediction.logits[predicting.prediction.find_draft(num_batches)]
    np.testing.assert_allclose(first_draft, golden.arrays["chained_logits.2"][:1], atol=2e-3)


def test_preempted_requests_with_images_have_the_same_answers(
    golden: VisionGolden, runner: OpenVINORunner
) -> None:
    """Few blocks, so that requests are preempted and their prompts are computed again."""
    block_size, num_prompt_tokens = runner.info.block_size, len(golden.prompt(1))
    assert num_prompt_tokens < block_size < num_prompt_tokens + 24, "two blocks for each request"
    engine = make_engine(PredictingRunner(runner, 16, num_blocks=4), prefix_caching=False)
    requests = [
        msgspec.structs.replace(golden.request(1, max_tokens=24), request_id=f"number {number}")
        for number in range(3)
    ]

    results = run(engine, requests)

    assert all(
        results[request.request_id, 0].token_ids == golden.greedy(1)[:24] for request in requests
    )
    assert sum(result.final.num_proposed_tokens for result in results.values()) > 10
    assert engine.stats().num_preemptions > 0
