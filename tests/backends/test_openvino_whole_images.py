"""Models whose image tokens attend to each other compute an image in one step.

Other requests in the step do not change the result.
"""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.engine.core import EngineCore
from ouzel.types.engine_request import EngineRequest
from tests.backends.conftest import Load
from tests.backends.vision_golden import (
    IMAGE_TOKEN,
    LimitedRunner,
    VisionGolden,
    read_vision_golden,
)
from tests.engine.requests import Result, make_request, run, run_alone

BLOCK_SIZE = 32


@pytest.fixture(scope="module", params=["gemma3", "gemma4"])
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    return read_vision_golden(request.param)


def request_image(
    golden: VisionGolden,
    token_ids: list[int],
    begin: int,
    *,
    num_prompt_logprobs: int | None = None,
) -> EngineRequest:
    """Makes a request in which the tokens of the first image begin at `begin`."""
    image = golden.image(0, ((begin, golden.num_rows(0)),))
    request = make_request(
        token_ids, max_tokens=4, num_logprobs=0, num_prompt_logprobs=num_prompt_logprobs
    )
    return msgspec.structs.replace(request, images=(image,))


def list_logprobs(result: Result) -> NDArray[np.float64]:
    return np.array([each.sampled.logprob for each in [*result.prompt_logprobs, *result.logprobs]])


def read_forwards(runner: OpenVINORunner, num_tokens: int) -> LimitedRunner:
    """Returns a runner whose tokens of images attend only to earlier tokens."""
    limited = LimitedRunner(runner, num_tokens)
    limited.info = msgspec.structs.replace(limited.info, attends_to_whole_images=False)
    return limited


@pytest.mark.parametrize(
    ("golden", "attends"), [("gemma4", True), ("gemma4-layers", False)], indirect=["golden"]
)
def test_only_models_whose_image_tokens_attend_to_each_other_need_whole_images(
    golden: VisionGolden, attends: bool, load: Load
) -> None:
    """Large models of Gemma 4 need whole images; small models have causal attention only."""
    assert load(golden.directory).info.attends_to_whole_images == attends


def test_an_image_without_attention_to_later_tokens_would_have_other_logprobs(
    golden: VisionGolden, load: Load
) -> None:
    runner = load(golden.directory)
    assert isinstance(runner, OpenVINORunner)
    request = golden.request(1, max_tokens=1, num_prompt_logprobs=1)

    both_ways, causal = (
        list_logprobs(run_alone(EngineCore(each, prefix_caching=False), request)[0])
        for each in (LimitedRunner(runner, 12), read_forwards(runner, 12))
    )

    begin = golden.images(1)[0].runs[0][0]
    np.testing.assert_allclose(both_ways[: begin - 1], causal[: begin - 1], atol=1e-5)
    assert np.abs(both_ways - causal).max() > 0.01


@pytest.mark.release("whole images: cuts and neighbours")
def test_images_of_different_requests_do_not_attend_to_each_other(
    golden: VisionGolden, load: Load
) -> None:
    """One prompt ends with its image, and the next prompt of the step begins with an image."""
    text, image = golden.prompt(1)[:9], [IMAGE_TOKEN] * golden.num_rows(0)
    pairs = [(text + image, 9), (image + text, 0), (text + image, 9)]
    requests = [
        request_image(golden, token_ids, begin, num_prompt_logprobs=1) for token_ids, begin in pairs
    ]
    runner = load(golden.directory)

    results = run(EngineCore(runner, prefix_caching=False), requests)

    for request in requests:
        alone = run_alone(
            EngineCore(runner, prefix_caching=False),
            msgspec.structs.replace(request, request_id="alone"),
        )
        batched = results[request.request_id, 0]
        assert batched.token_ids == alone[0].token_ids
        np.testing.assert_allclose(list_logprobs(batched), list_logprobs(alone[0]), atol=1e-4)


@pytest.mark.release("whole images: cuts and neighbours")
def test_a_prefix_hit_may_end_inside_an_image(golden: VisionGolden, load: Load) -> None:
    engine, text = EngineCore(load(golden.directory)), golden.prompt(1)[:9]
    begin = BLOCK_SIZE - golden.num_rows(0) // 2
    prompt = (text * BLOCK_SIZE)[:begin] + [IMAGE_TOKEN] * golden.num_rows(0)
    first = request_image(golden, prompt + text, begin)
    second = request_image(golden, prompt + text[::-1], begin)
    without = EngineCore(load(golden.directory), prefix_caching=False)
    run_alone(engine, first)

    hit = run_alone(engine, second)[0]

    alone = run_alone(without, msgspec.structs.replace(second, request_id="alone"))[0]
    assert hit.final.num_cached_tokens == BLOCK_SIZE
    assert hit.token_ids == alone.token_ids
    np.testing.assert_allclose(list_logprobs(hit), list_logprobs(alone), atol=1e-4)
