"""Qwen3-ASR's releases have another layout than transformers' checkpoints, and some are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import WEIGHTS, change_config, load_copy, rename_tensors
from tests.backends.hearing_golden import HearingGolden, read_hearing_golden
from tests.backends.vision_golden import encode_image
from tests.engine.requests import run_alone

RELEASED_NAMES = {
    b"model.multi_modal_projector.linear_1.": b"thinker.audio_tower.proj1.",
    b"model.multi_modal_projector.linear_2.": b"thinker.audio_tower.proj2.",
    b"model.audio_tower.": b"thinker.audio_tower.",
    b"model.language_model.": b"thinker.model.",
    b"lm_head.": b"thinker.lm_head.",
}
THINKER = ("audio_config", "text_config", "audio_token_id")
TOKENS = {"audio_start_token_id": 2, "audio_end_token_id": 3}


@pytest.fixture(scope="module")
def golden() -> HearingGolden:
    return read_hearing_golden("qwen3_asr")


@pytest.fixture
def copy(golden: HearingGolden, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden.directory, tmp_path / "model"))


def write_as_released(directory: Path) -> None:
    """Writes the checkpoint as Qwen did: the model is the `thinker`, and rotates by three equal
    positions.
    """
    for old, new in RELEASED_NAMES.items():
        rename_tensors(directory / WEIGHTS, old, new)
    path = directory / "config.json"
    values = json.loads(path.read_text())
    thinker = TOKENS | {key: values.pop(key) for key in THINKER}
    text = thinker["text_config"]
    text["model_type"] = "qwen3_asr_text"
    text["rope_theta"] = text.pop("rope_parameters")["rope_theta"]
    axes = {"mrope_section": [4, 2, 2], "mrope_interleaved": True, "interleaved": True}
    text["rope_scaling"] = {"rope_type": "default", "type": "default", **axes}
    thinker["audio_config"] |= {"conv_chunksize": 500, "max_source_positions": 1500}
    values |= {"thinker_config": thinker, "support_languages": ["English"]}
    path.write_text(json.dumps(values))


def test_a_released_checkpoint_gives_the_same_tokens(golden: HearingGolden, copy: Path) -> None:
    write_as_released(copy)
    runner = load_copy(copy)
    features = np.concatenate([encode_image(runner, each) for each in golden.sounds(3)], axis=1)

    result = run_alone(EngineCore(runner), golden.request(3))[0]

    assert np.abs(features - golden.arrays["features.3"][None]).max() < 1e-3
    assert result.token_ids == golden.greedy(3)


@pytest.mark.parametrize(
    ("values", "audio", "complaint"),
    [
        ({"classify_num": 5000}, {}, "classify_num 5000 is not supported"),
        ({}, {"n_window": 100}, "audio_config: n_window 100 is not supported; supported: only 50"),
        ({}, {"n_window_infer": 250}, "n_window_infer must be a multiple of 100, found 250"),
        ({}, {"output_dim": 48}, "output_dim must be 32, the hidden_size of the language model"),
    ],
)
def test_another_model_is_refused(
    copy: Path, values: dict[str, object], audio: dict[str, object], complaint: str
) -> None:
    config = json.loads((copy / "config.json").read_text())
    change_config(copy, audio_config=config["audio_config"] | audio, **values)

    with pytest.raises(ModelLoadError, match=complaint):
        load_copy(copy)
