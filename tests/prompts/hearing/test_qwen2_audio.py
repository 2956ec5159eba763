"""Tests the preparation of sounds for Qwen2-Audio against the formulas of the reference."""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.audio.mel import MelSpectrogram
from ouzel.audio.sound import Sound
from ouzel.errors import ModelLoadError
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.loader import load_sound_processor
from tests.audio.signals import make_voice

AUDIO = {"num_mel_bins": 128, "max_source_positions": 1500}


def load(directory: Path, **settings: object) -> SoundProcessor:
    config = {"model_type": "qwen2_audio", "audio_config": AUDIO}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "preprocessor_config.json").write_text(
        json.dumps({"feature_size": 128, **settings})
    )
    processor = load_sound_processor(directory)
    assert processor is not None
    return processor


@pytest.mark.parametrize("num_samples", [321, 1600, 16_001, 479_999, 480_000])
def test_a_sound_has_as_many_tokens_as_in_transformers(tmp_path: Path, num_samples: int) -> None:
    layout = load(tmp_path).layout(num_samples)

    num_frames = len(range(0, num_samples, 160))  # frames whose attention mask is 1
    num_tokens = (((num_frames - 1) // 2 + 1) - 2) // 2 + 1
    assert (layout.num_frames, layout.num_tokens) == (num_frames, num_tokens)
    assert layout.text == "<|AUDIO|>" * num_tokens


@pytest.mark.parametrize(
    ("num_samples", "complaint"),
    [
        (320, "a sound must last >= 0.0200625 s, given 0.02 s"),
        (480_001, "a sound must last <= 30 s, given 30.00 s"),
    ],
)
def test_a_sound_of_another_length_is_refused(
    tmp_path: Path, num_samples: int, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(tmp_path).layout(num_samples)


@pytest.mark.parametrize("seconds", [0.5, 1.005, 30])
def test_the_features_begin_as_those_of_a_whole_window(tmp_path: Path, seconds: float) -> None:
    sound = Sound.from_samples(make_voice(seconds, 1))
    processor = load(tmp_path)

    features = processor.compute_features(sound)

    mel = MelSpectrogram(128)
    whole = mel.window(sound, 0, mel.find_peak(sound))
    num_frames = processor.layout(sound.num_samples).num_frames
    # the convolutions of the last row read two frames behind the frames of a pair
    assert features.shape[1] == min(num_frames + num_frames % 2 + 2, 3000)
    assert np.array_equal(features, whole[:, : features.shape[1]])


def test_settings_of_another_extractor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="feature_size must be 128, found 80"):
        load(tmp_path, feature_size=80)


def test_newer_checkpoints_have_the_settings_of_the_extractor_elsewhere(tmp_path: Path) -> None:
    load(tmp_path)
    inner = {"feature_extractor": {"feature_size": 80}}
    (tmp_path / "processor_config.json").write_text(json.dumps(inner))

    with pytest.raises(ModelLoadError, match=r"processor_config\.json: feature_size must be 128"):
        load_sound_processor(tmp_path)


def test_a_model_of_another_family_hears_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))

    assert load_sound_processor(tmp_path) is None
