"""Qwen3-Omni sees and hears in one prompt; its part that speaks is left out."""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput
from tests.backends.checkpoint_edits import load_copy
from tests.backends.conftest import Load
from tests.backends.hearing_golden import SOUND_TOKEN, HearingGolden, read_hearing_golden
from tests.backends.vision_golden import LimitedRunner
from tests.engine.requests import make_request, run, run_alone

IMAGE_TOKEN = 6
MERGED_SIDE = 8  # pixels of a token


@pytest.fixture(scope="module")
def golden() -> HearingGolden:
    return read_hearing_golden("qwen3_omni_moe")


def make_image(golden: HearingGolden, number: int, begin: int) -> ImageInput:
    pixels = golden.arrays[f"picture.{number}"]
    num_tiles, height, width, _ = pixels.shape
    grid = (1, height // MERGED_SIDE, width // MERGED_SIDE)
    return ImageInput(
        digest=bytes([100 + number] * 16),
        runs=((begin, grid[1] * grid[2]),),
        shape=(num_tiles, height, width),
        pixels=pixels.tobytes(),
        rescale=1 / 255,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        size=(height, width),
        position_grid=grid,
    )


def make_mixed_request(golden: HearingGolden, **params: object) -> EngineRequest:
    """Makes a request with a picture, a sound and another picture."""
    prompt = golden.arrays["prompt.mixed"]
    sound_begin = int(np.flatnonzero(prompt == SOUND_TOKEN)[0])
    first = int(np.flatnonzero(prompt == IMAGE_TOKEN)[0])
    second = sound_begin + int(np.flatnonzero(prompt[sound_begin:] == IMAGE_TOKEN)[0])
    media: tuple[MediaInput, ...] = (
        make_image(golden, 0, first),
        golden.sound(1, sound_begin),
        make_image(golden, 1, second),
    )
    request = make_request(prompt.tolist(), max_tokens=8, **params)  # type: ignore[arg-type]
    return msgspec.structs.replace(request, images=media)


def test_a_prompt_with_pictures_and_a_sound_equals_transformers(
    golden: HearingGolden, load: Load
) -> None:
    engine = EngineCore(load(golden.directory))

    result = run_alone(engine, make_mixed_request(golden, num_prompt_logprobs=1))[0]

    rows = golden.arrays["logits.mixed"][:-1].astype(np.float64)
    token_ids = golden.arrays["prompt.mixed"][1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    assert np.abs(logprobs - expected).max() < 1e-4
    assert result.token_ids == golden.arrays["greedy.mixed"].tolist()


@pytest.mark.parametrize("chunk", [7, 20])
def test_chunks_of_a_prompt_with_pictures_and_a_sound_give_the_same_tokens(
    golden: HearingGolden, load: Load, chunk: int
) -> None:
    engine = EngineCore(LimitedRunner(load(golden.directory), chunk), prefix_caching=False)

    result = run_alone(engine, make_mixed_request(golden))[0]

    assert result.token_ids == golden.arrays["greedy.mixed"].tolist()


def test_mixed_requests_run_beside_others_and_are_cached(golden: HearingGolden, load: Load) -> None:
    engine = EngineCore(load(golden.directory))
    first = run_alone(engine, make_mixed_request(golden))[0]
    mixed, sounds = make_mixed_request(golden), golden.request(3)

    results = run(engine, [mixed, sounds])

    expected = golden.arrays["greedy.mixed"].tolist()
    assert first.token_ids == results[mixed.request_id, 0].token_ids == expected
    assert results[mixed.request_id, 0].final.num_cached_tokens > 0
    assert results[sounds.request_id, 0].token_ids == golden.greedy(3)


def test_a_window_of_attention_of_the_text_is_refused(
    golden: HearingGolden, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(golden.directory, tmp_path / "model"))
    config = json.loads((directory / "config.json").read_text())
    config["thinker_config"]["text_config"]["sliding_window"] = 64
    (directory / "config.json").write_text(json.dumps(config))

    with pytest.raises(ModelLoadError, match="sliding_window 64 is not supported"):
        load_copy(directory)
