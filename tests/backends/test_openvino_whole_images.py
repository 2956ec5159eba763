"""Where the tokens of a picture see each other, it is computed whole, and its neighbours in a step change nothing."""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.engine.core import EngineCore
from ouzel.types.engine_request import EngineRequest
from tests.backends.conftest import Load
from tests.backends.test_openvino_vision import (
    IMAGE_TOKEN,
    Limited,
    VisionGolden,
    read_vision_golden,
)
from tests.engine.requests import Result, make_request, run, run_alone

NAMES = ["gemma3", "gemma4"]
BLOCK_SIZE = 32


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    return read_vision_golden(request.param)


def asked(
    golden: VisionGolden,
    token_ids: list[int],
    begin: int,
    *,
    num_prompt_logprobs: int | None = None,
) -> EngineRequest:
    """The first picture's tokens begin there."""
    image = golden.image(0, ((begin, golden.num_rows(0)),))
    made = make_request(
        token_ids, max_tokens=4, num_logprobs=0, num_prompt_logprobs=num_prompt_logprobs
    )
    return msgspec.structs.replace(made, images=(image,))


def logprobs_of(result: Result) -> NDArray[np.float64]:
    return np.array([each.sampled.logprob for each in [*result.prompt_logprobs, *result.logprobs]])


def pictures_cut(runner: OpenVINORunner, num_tokens: int) -> Limited:
    """Takes pictures for such as may be cut."""
    limited = Limited(runner, num_tokens)
    limited.info = msgspec.structs.replace(limited.info, attends_to_whole_images=False)
    return limited


def test_a_picture_that_were_cut_would_give_other_logprobs(
    golden: VisionGolden, load: Load
) -> None:
    runner = load(golden.directory)
    assert isinstance(runner, OpenVINORunner)
    request = golden.request(1, max_tokens=1, num_prompt_logprobs=1)

    whole, cut = (
        logprobs_of(run_alone(EngineCore(each, prefix_caching=False), request)[0])
        for each in (Limited(runner, 12), pictures_cut(runner, 12))
    )

    begin = golden.images(1)[0].runs[0][0]
    np.testing.assert_allclose(whole[: begin - 1], cut[: begin - 1], atol=1e-5)
    assert np.abs(whole - cut).max() > 0.01


@pytest.mark.release("whole images: cuts and neighbours")
def test_pictures_side_by_side_in_a_step_do_not_see_each_other(
    golden: VisionGolden, load: Load
) -> None:
    """One prompt ends with its picture, and the next begins with one."""
    text, picture = golden.prompt(1)[:9], [IMAGE_TOKEN] * golden.num_rows(0)
    pairs = [(text + picture, 9), (picture + text, 0), (text + picture, 9)]
    requests = [
        asked(golden, token_ids, begin, num_prompt_logprobs=1) for token_ids, begin in pairs
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
        np.testing.assert_allclose(logprobs_of(batched), logprobs_of(alone[0]), atol=1e-4)


@pytest.mark.release("whole images: cuts and neighbours")
def test_a_hit_may_end_inside_a_picture(golden: VisionGolden, load: Load) -> None:
    engine, text = EngineCore(load(golden.directory)), golden.prompt(1)[:9]
    begin = BLOCK_SIZE - golden.num_rows(0) // 2
    prompt = (text * BLOCK_SIZE)[:begin] + [IMAGE_TOKEN] * golden.num_rows(0)
    first = asked(golden, prompt + text, begin)
    second = asked(golden, prompt + text[::-1], begin)
    without = EngineCore(load(golden.directory), prefix_caching=False)
    run_alone(engine, first)

    hit = run_alone(engine, second)[0]

    alone = run_alone(without, msgspec.structs.replace(second, request_id="alone"))[0]
    assert hit.final.num_cached_tokens == BLOCK_SIZE
    assert hit.token_ids == alone.token_ids
    np.testing.assert_allclose(logprobs_of(hit), logprobs_of(alone), atol=1e-4)
