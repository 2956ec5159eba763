"""Compares audio encoders, and prompts with sounds, with transformers in float32."""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ouzel.engine.base import ImageRunner
from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from tests.backends.conftest import Load
from tests.backends.forward import relative_error
from tests.backends.hearing_golden import (
    NAMES,
    SEEING,
    WITH_LAYERS,
    HearingGolden,
    make_sound,
    read_hearing_golden,
)
from tests.backends.vision_golden import LimitedRunner, encode_image
from tests.engine.requests import Result, run, run_alone

Json = dict[str, object]


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> HearingGolden:
    return read_hearing_golden(request.param)


@pytest.fixture(scope="module", params=SEEING)
def seeing(request: pytest.FixtureRequest) -> HearingGolden:
    return read_hearing_golden(request.param)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("name", ["gemma4", "gemma4_unified"])
def test_spectrograms_equal_transformers(name: str, number: int) -> None:
    stored = read_hearing_golden(name)

    features = stored.processor.compute_features(make_sound(number, stored.lengths[number]))

    expected = stored.arrays[f"mel.{number}"]
    assert features.shape == expected.shape
    assert np.abs(features - expected).max() < 1e-6


def test_features_equal_transformers(golden: HearingGolden, load: Load) -> None:
    runner = load(golden.directory)
    features = np.concatenate([encode_image(runner, each) for each in golden.sounds(3)], axis=1)

    expected = golden.arrays["features.3"][None]
    assert features.shape == expected.shape
    assert relative_error(features, expected) < 1e-4


@pytest.mark.parametrize("count", [1, 2, 3])
def test_prompt_logprobs_and_greedy_tokens_equal_transformers(
    golden: HearingGolden, load: Load, count: int
) -> None:
    engine = EngineCore(load(golden.directory))

    result = run_alone(engine, golden.request(count, num_prompt_logprobs=1))[0]

    assert find_largest_difference(golden, result, count) < 1e-4
    assert result.token_ids == golden.greedy(count)


def find_largest_difference(golden: HearingGolden, result: Result, count: int | str) -> float:
    """Returns the largest difference between log probabilities of the prompt's tokens."""
    rows = golden.arrays[f"logits.{count}"][:-1].astype(np.float64)
    token_ids = golden.prompt(count)[1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    return float(np.abs(logprobs - expected).max())


def test_pictures_beside_sounds_equal_transformers(seeing: HearingGolden, load: Load) -> None:
    runner = load(seeing.directory)
    features = np.concatenate([encode_image(runner, each) for each in seeing.mixed()], axis=1)

    result = run_alone(EngineCore(runner), seeing.mixed_request(num_prompt_logprobs=1))[0]

    assert relative_error(features, seeing.arrays["features.mixed"][None]) < 1e-4
    assert find_largest_difference(seeing, result, "mixed") < 1e-4
    assert result.token_ids == seeing.greedy("mixed")


@pytest.mark.parametrize("chunk", [7, 45])
def test_chunks_of_a_prompt_with_pictures_and_sounds_give_the_same_tokens(
    seeing: HearingGolden, load: Load, chunk: int
) -> None:
    engine = EngineCore(LimitedRunner(load(seeing.directory), chunk), prefix_caching=False)

    result = run_alone(engine, seeing.mixed_request(max_tokens=8))[0]

    assert result.token_ids == seeing.greedy("mixed")[:8]


def test_mixed_requests_beside_others_and_from_the_cache_give_the_same_tokens(
    seeing: HearingGolden, load: Load
) -> None:
    engine = EngineCore(load(seeing.directory))
    mixed = [seeing.mixed_request(), seeing.mixed_request()]
    heard = seeing.request(1)

    results = run(engine, [mixed[0], heard, mixed[1]])
    again = run_alone(engine, seeing.mixed_request())[0]

    for request in mixed:
        assert results[request.request_id, 0].token_ids == seeing.greedy("mixed")
    assert results[heard.request_id, 0].token_ids == seeing.greedy(1)
    assert again.token_ids == seeing.greedy("mixed")
    assert again.final.num_cached_tokens >= 64


@pytest.mark.parametrize("chunk", [7, 45])
def test_chunks_of_a_prompt_with_sounds_give_the_same_tokens(
    golden: HearingGolden, load: Load, chunk: int
) -> None:
    engine = EngineCore(LimitedRunner(load(golden.directory), chunk), prefix_caching=False)

    result = run_alone(engine, golden.request(2, max_tokens=8))[0]

    assert result.token_ids == golden.greedy(2)[:8]


def test_cached_and_batched_requests_give_the_same_tokens(
    golden: HearingGolden, load: Load
) -> None:
    engine = EngineCore(load(golden.directory))
    first = run_alone(engine, golden.request(2))[0]
    counts = (1, 2, 3, 2, 1)
    requests = [golden.request(count) for count in counts]

    results = run(engine, requests)

    assert first.token_ids == golden.greedy(2)
    for request, count in zip(requests, counts, strict=True):
        assert results[request.request_id, 0].token_ids == golden.greedy(count)
    assert results[requests[1].request_id, 0].final.num_cached_tokens > 0


def test_another_sound_gives_other_logprobs(golden: HearingGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory))
    request = golden.request(1, max_tokens=1, num_logprobs=0)
    [sound] = golden.sounds(1)
    quiet = msgspec.structs.replace(sound, digest=b"quiet", features=bytes(len(sound.features)))
    other = msgspec.structs.replace(request, request_id="quiet", images=(quiet,))

    logprobs = [run_alone(engine, each)[0].logprobs[0].sampled.logprob for each in (request, other)]

    assert abs(logprobs[0] - logprobs[1]) > 1e-3


@pytest.mark.parametrize("name", WITH_LAYERS)
def test_an_encoder_runs_in_parts(name: str, load: Load) -> None:
    """Steps of other requests run between two parts."""
    golden = read_hearing_golden(name)
    runner = load(golden.directory)
    assert isinstance(runner, ImageRunner)
    parts = runner.encode(golden.sounds(1)[0])

    assert sum(1 for _ in parts) >= 2


def test_features_in_the_serving_precision_are_near_transformers(
    golden: HearingGolden, load: Load
) -> None:
    runner = load(golden.directory, "int8", "auto", "auto")
    features = np.concatenate([encode_image(runner, each) for each in golden.sounds(3)], axis=1)

    assert relative_error(features, golden.arrays["features.3"][None]) < 0.05


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"attention_context_left": 9}, "attention_context_left 9 is not supported; supported: 13"),
        (
            {"attention_context_right": 1},
            "attention_context_right 1 is not supported; supported: 0",
        ),
        ({"num_attention_heads": 3}, "hidden_size 32 is not supported; supported: a multiple of 6"),
        ({"subsampling_conv_channels": [126, 4]}, "must be a multiple of 4"),
        ({"attention_logit_cap": 0.0}, "attention_logit_cap 0.0 is not supported"),
        ({"hidden_act": "selu"}, "hidden_act selu is not supported"),
        ({"output_proj_dims": 25}, "output_proj"),
    ],
)
def test_a_config_that_the_encoder_does_not_support_is_refused(
    seeing: HearingGolden, tmp_path: Path, load: Load, changes: Json, complaint: str
) -> None:
    shutil.copytree(seeing.directory, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["audio_config"] |= changes
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))

    with pytest.raises(ModelLoadError, match=complaint):
        load(tmp_path / "model")
