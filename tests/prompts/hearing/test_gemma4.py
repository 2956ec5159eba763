"""Tests the preparation of sounds for Gemma 4 against the formulas of the reference."""

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
    config = {"model_type": "gemma4", "audio_config": {}}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "processor_config.json").write_text(json.dumps({"feature_extractor": settings}))
    processor = load_sound_processor(directory)
    assert processor is not None
    return processor


@pytest.mark.parametrize("num_samples", [161, 480, 481, 1600, 16_001, 479_999, 480_000])
def test_a_sound_has_as_many_tokens_as_in_transformers(tmp_path: Path, num_samples: int) -> None:
    layout = load(tmp_path).layout(num_samples)

    num_frames = len(range(320, 160 + num_samples, 160))  # frames with a sample behind them
    num_tokens = num_frames
    for _ in range(2):  # convolutions of three frames with a stride of two
        num_tokens = (num_tokens + 2 - 3) // 2 + 1
    assert (layout.num_frames, layout.num_tokens) == (num_frames, num_tokens)
    assert layout.text == "<|audio>" + "<|audio|>" * num_tokens + "<audio|>"


@pytest.mark.parametrize(
    ("num_samples", "complaint"),
    [
        (160, "a sound must last >= 0.0100625 s, given 0.01 s"),
        (480_001, "a sound must last <= 30 s, given 30.00 s"),
    ],
)
def test_a_sound_of_another_length_is_refused(
    tmp_path: Path, num_samples: int, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(tmp_path).layout(num_samples)


@pytest.mark.parametrize("seconds", [0.0100625, 0.5, 1.005])
def test_features_have_the_frames_of_the_layout(tmp_path: Path, seconds: float) -> None:
    sound = Sound.from_samples(make_voice(seconds, 1))
    processor = load(tmp_path)

    features = processor.compute_features(sound)

    assert features.shape == (128, processor.layout(sound.num_samples).num_frames)
    assert features.dtype == np.float32


def test_settings_change_the_features(tmp_path: Path) -> None:
    sound = Sound.from_samples(make_voice(0.5, 1))
    plain = load(tmp_path).compute_features(sound)

    means = load(tmp_path, per_bin_mean=[0.5] * 128).compute_features(sound)
    deviations = load(tmp_path, per_bin_stddev=[2.0] * 128).compute_features(sound)
    louder = load(tmp_path, input_scale_factor=2.0, mel_floor=2e-3).compute_features(sound)

    assert np.allclose(means, plain - 0.5, atol=1e-6)
    assert np.allclose(deviations, plain / 2, atol=1e-6)
    assert np.allclose(louder, plain + np.log(2), atol=1e-5)


def test_each_bin_hears_its_own_frequencies(tmp_path: Path) -> None:
    times = np.arange(16_000) / 16_000
    processor = load(tmp_path)
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 130)[1:-1]
    middles = 700 * (10 ** (mel / 2595) - 1)

    for number in (40, 80, 110):
        tone = np.sin(2 * np.pi * middles[number] * times).astype(np.float32) / 2
        features = processor.compute_features(Sound.from_samples(tone))
        assert abs(int(features[:, 50].argmax()) - number) <= 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sampling_rate": 8000}, "sampling_rate must be 16000, found 8000"),
        ({"preemphasis": 0.97}, "preemphasis must be 0, found 0.97"),
        ({"dither": 0.1}, "dither must be 0, found 0.1"),
        ({"feature_extractor_type": "Gemma3nAudioFeatureExtractor"}, "must be Gemma4Audio"),
        ({"per_bin_mean": [0.0]}, "per_bin_mean must have feature_size 128 numbers, found 1"),
        ({"per_bin_stddev": [0.0] * 128}, "per_bin_stddev without 0"),
        ({"min_frequency": 8000.0}, "min_frequency must be < max_frequency"),
        ({"mel_floor": 0}, "mel_floor"),
    ],
)
def test_settings_of_another_extractor_are_refused(
    tmp_path: Path, settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ModelLoadError, match=complaint):
        load(tmp_path, **settings)
