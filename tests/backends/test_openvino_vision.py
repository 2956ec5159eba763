"""Compares vision encoders, and prompts with images, with transformers in float32.

All tests of a checkpoint run one after the other, so they load it once: the scope of the fixture is
the module, and tests/work_groups.py gives these tests to one process.
"""

import msgspec
import numpy as np
import pytest

from ouzel.engine.base import ImageRunner
from ouzel.engine.core import EngineCore
from ouzel.types.engine_request import EngineRequest
from tests.backends.conftest import Load, skip_without_kernels
from tests.backends.forward import relative_error
from tests.backends.vision_golden import (
    GOLDEN,
    NAMES,
    OF_KINDS,
    OF_TWO_KINDS,
    LimitedRunner,
    VisionGolden,
    encode_image,
    read_vision_golden,
)
from tests.engine.requests import only_images, run, run_alone
from tests.release_only import release_only


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    skip_without_kernels(request.param)
    return read_vision_golden(request.param)


def test_features_equal_transformers(golden: VisionGolden, load: Load) -> None:
    runner = load(golden.directory)
    features = np.concatenate([encode_image(runner, image) for image in golden.images(4)], axis=1)

    expected = golden.arrays["features.4"]
    assert features.shape == expected.shape
    assert relative_error(features, expected) < 1e-5


@pytest.mark.parametrize("golden", ["qwen2_vl"], indirect=True)
def test_an_encoder_has_a_part_between_the_first_and_the_last(
    golden: VisionGolden, load: Load
) -> None:
    """Large encoders consist of such parts, so the tests need an encoder that has one."""
    runner = load(GOLDEN / "qwen2_vl")
    assert isinstance(runner, ImageRunner)

    assert sum(1 for _ in runner.encode(golden.images(1)[0])) >= 2


@pytest.mark.parametrize(
    "count", [2, *release_only("prompts with one picture and with four", 1, 4)]
)
def test_prompt_logprobs_and_greedy_tokens_equal_transformers(
    golden: VisionGolden, load: Load, count: int
) -> None:
    engine = EngineCore(load(golden.directory))
    if engine.info.attends_to_whole_prompts:
        pytest.skip("test_openvino_two_way_prompts.py compares all logits: no prompt has logprobs")

    result = run_alone(engine, golden.request(count, num_prompt_logprobs=1))[0]

    rows = golden.arrays[f"logits.{count}"][:-1].astype(np.float64)
    token_ids = golden.prompt(count)[1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    assert np.abs(logprobs - expected).max() < 1e-4
    assert result.token_ids == golden.greedy(count)


@pytest.mark.parametrize("chunk", [7, 45])
@pytest.mark.parametrize("golden", OF_KINDS, indirect=True)
def test_chunks_of_a_prompt_with_images_give_the_same_tokens(
    golden: VisionGolden, load: Load, chunk: int
) -> None:
    engine = EngineCore(LimitedRunner(load(golden.directory), chunk), prefix_caching=False)

    result = run_alone(engine, golden.request(2, max_tokens=8))[0]

    assert result.token_ids == golden.greedy(2)[:8]


@pytest.mark.parametrize("golden", OF_KINDS, indirect=True)
def test_cached_and_batched_requests_give_the_same_tokens(golden: VisionGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory))
    first = run_alone(engine, golden.request(2))[0]
    requests = [golden.request(count) for count in (1, 2, 4, 2, 1)]

    results = run(engine, requests)

    assert first.token_ids == golden.greedy(2)
    for request, count in zip(requests, (1, 2, 4, 2, 1), strict=True):
        assert results[request.request_id, 0].token_ids == golden.greedy(count)
    assert results[requests[1].request_id, 0].final.num_cached_tokens > 0


# test_seeing_families.py shows for every family, beginning with a chat, that images differ.
@pytest.mark.parametrize("golden", OF_TWO_KINDS, indirect=True)
def test_another_image_gives_other_logprobs(golden: VisionGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory))

    def last_logprob(request: EngineRequest) -> float:
        return run_alone(engine, request)[0].logprobs[0].sampled.logprob

    request = golden.request(1, max_tokens=1, num_logprobs=0)
    [image] = only_images(request.images)
    dark = msgspec.structs.replace(image, digest=b"dark", pixels=bytes(len(image.pixels)))
    with_dark_image = msgspec.structs.replace(request, request_id="dark", images=(dark,))
    assert abs(last_logprob(request) - last_logprob(with_dark_image)) > 1e-3


@pytest.mark.release("chunks of every size, of families that see")
def test_every_chunk_size_gives_the_same_tokens(golden: VisionGolden, load: Load) -> None:
    runner = load(golden.directory)
    for chunk in range(1, len(golden.prompt(2)) + 1):
        engine = EngineCore(LimitedRunner(runner, chunk), prefix_caching=False)
        tokens = run_alone(engine, golden.request(2, max_tokens=8))[0].token_ids
        assert tokens == golden.greedy(2)[:8], f"chunks of {chunk}"


@pytest.mark.parametrize("golden", OF_TWO_KINDS, indirect=True)
def test_features_in_the_serving_precision_are_near_transformers(
    golden: VisionGolden, load: Load
) -> None:
    runner = load(golden.directory, "int8", "auto", "auto")
    features = np.concatenate([encode_image(runner, image) for image in golden.images(4)], axis=1)

    assert relative_error(features, golden.arrays["features.4"]) < 0.05
