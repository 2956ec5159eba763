"""Tests the preparation of sounds for Gemma 4 12B."""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.audio.sound import Sound
from ouzel.errors import ModelLoadError
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.loader import load_sound_processor
from tests.audio.signals import make_voice


def load(directory: Path, **settings: object) -> SoundProcessor:
    config = {"model_type": "gemma4_unified", "audio_config": {}}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "processor_config.json").write_text(json.dumps({"feature_extractor": settings}))
    processor = load_sound_processor(directory)
    assert processor is not None
    return processor


@pytest.mark.parametrize(
    ("num_samples", "num_tokens"), [(1, 1), (640, 1), (641, 2), (480_000, 750)]
)
def test_a_token_stands_for_640_samples(tmp_path: Path, num_samples: int, num_tokens: int) -> None:
    layout = load(tmp_path).layout(num_samples)

    assert (layout.num_frames, layout.num_tokens) == (num_tokens, num_tokens)
    assert layout.text == "<|audio>" + "<|audio|>" * num_tokens + "<audio|>"


def test_the_features_are_the_samples_and_zeros_behind_them(tmp_path: Path) -> None:
    sound = Sound.from_samples(make_voice(0.1, 1))

    features = load(tmp_path, audio_samples_per_token=1000).compute_features(sound)

    assert features.shape == (1000, 2)
    flat = features.T.reshape(-1)
    assert np.array_equal(flat[:1600], sound.samples(0, 1600))
    assert not flat[1600:].any()


def test_a_longer_sound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a sound must last <= 30 s, given 30\.00 s"):
        load(tmp_path).layout(480_001)


def test_settings_of_another_extractor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="sampling_rate must be 16000, found 8000"):
        load(tmp_path, sampling_rate=8000)
