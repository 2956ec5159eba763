"""GGUF models with mmproj files: encoders and chats that agree with the original checkpoint."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from tests.backends import of_kinds
from tests.backends.conftest import Load
from tests.backends.forward import relative_error
from tests.backends.seeing_chats import GOLDEN_CHATS, NUM_LAST, shortened
from tests.backends.seeing_families import FAMILIES
from tests.backends.test_seeing_families import (
    GOLDEN_ANSWERS,
    Rendering,
    SeeingModel,
    make_chat,
    make_image_request,
    make_part,
)
from tests.backends.vision_golden import encode_image, read_vision_golden
from tests.engine.requests import run
from tests.gguf.seeing import NAMES, write_directory

KINDS = ["gemma3", "internvl", "qwen2_5_vl", "qwen3_vl", "smolvlm"]
# Errors of the features if the mmproj file is rounded to f16 or Q8_0. A wrong name gives 0.2.
ROUNDED = {"idefics3": 3e-4, "internvl": 0.03}
ROUNDED_TEXT = ("qwen3_5",)  # Q8_0
# The converter knows no dense layers beside experts, so the golden model has another layer.
OTHER_TEXT = ("qwen3_vl_moe",)
WINDOWS = {"gemma4": 16}  # the golden arrays need another window than the chats


@pytest.fixture(scope="module")
def rendering() -> Iterator[Rendering]:
    rendering = Rendering()
    yield rendering
    rendering.close()


def write_model(name: str, cache: Path, *, for_chats: bool) -> Path:
    """Makes the directory; for chats with the sizes of pictures of the small family."""
    window = {} if for_chats or name not in WINDOWS else {"sliding_window": WINDOWS[name]}
    directory = write_directory(name, cache, {"text_config": window})
    if for_chats:
        path = directory / "preprocessor_config.json"
        settings = json.loads(path.read_text()) | FAMILIES[name].preprocessor
        path.write_text(json.dumps(settings))
    return directory


@pytest.mark.parametrize("name", of_kinds("mmproj files of other families", NAMES, KINDS))
def test_features_and_logprobs_equal_the_checkpoint(name: str, load: Load, tmp_path: Path) -> None:
    golden = read_vision_golden(name)
    runner = load(write_model(name, tmp_path, for_chats=False))

    features = np.concatenate([encode_image(runner, image) for image in golden.images(4)], axis=1)

    assert relative_error(features, golden.arrays["features.4"]) < ROUNDED.get(name, 2e-5)
    if name in (*ROUNDED, *ROUNDED_TEXT, *OTHER_TEXT):
        return
    request = golden.request(2, num_prompt_logprobs=1)
    result = run(EngineCore(runner), [request])[request.request_id, 0]
    rows = golden.arrays["logits.2"][:-1].astype(np.float64)
    token_ids = golden.prompt(2)[1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    assert np.abs(logprobs - expected).max() < 1e-4
    assert result.token_ids == golden.greedy(2)


CHATS = [name for name in NAMES if name not in OTHER_TEXT]


@pytest.mark.parametrize("name", of_kinds("chats with mmproj files", CHATS, KINDS))
def test_chats_with_images_have_the_logprobs_of_transformers(
    name: str, load: Load, tmp_path: Path, rendering: Rendering
) -> None:
    directory = write_model(name, tmp_path, for_chats=True)
    model = SeeingModel(name, directory, load(directory), rendering)
    prompts = model.render([make_chat(*map(make_part, parts)) for parts in GOLDEN_CHATS.values()])
    requests = [make_image_request(prompt, num_prompt_logprobs=1) for prompt in prompts]
    results = run(EngineCore(model.runner), requests)

    tolerance = 0.5 if name in (*ROUNDED, *ROUNDED_TEXT) else 2e-4
    for golden, prompt, request in zip(
        GOLDEN_ANSWERS[name].values(), prompts, requests, strict=True
    ):
        assert shortened(prompt.text, model.feature_token) == golden["text"]
        positions = results[request.request_id, 0].prompt_logprobs[-NUM_LAST:]
        last = [position.sampled.logprob for position in positions]
        assert last == pytest.approx(golden["logprobs"], abs=tolerance)
