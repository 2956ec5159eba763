"""Tests the preparation of sounds for Qwen3-ASR against the reference."""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.audio.sound import Sound
from ouzel.errors import ModelLoadError
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.loader import load_sound_processor
from tests.backends.hearing_golden import make_sound, read_hearing_golden

CONFIG: dict[str, object] = {"model_type": "qwen3_asr", "audio_config": {"num_mel_bins": 128}}
RELEASED: dict[str, object] = {
    "model_type": "qwen3_asr",
    "thinker_config": {"audio_config": {"num_mel_bins": 128}, "text_config": {}},
}


def load(
    directory: Path, config: dict[str, object] = CONFIG, **settings: object
) -> SoundProcessor | None:
    (directory / "config.json").write_text(json.dumps(config))
    values = {"feature_size": 128, **settings}
    (directory / "preprocessor_config.json").write_text(json.dumps(values))
    return load_sound_processor(directory)


@pytest.mark.parametrize("config", [CONFIG, RELEASED])
@pytest.mark.parametrize(
    "num_samples", [1, 7_999, 8_000, 15_999, 16_000, 16_159, 17_280, 128_000, 640_123, 19_200_000]
)
def test_a_sound_has_as_many_tokens_as_in_transformers(
    tmp_path: Path, config: dict[str, object], num_samples: int
) -> None:
    processor = load(tmp_path, config)
    assert processor is not None
    layout = processor.layout(num_samples)

    num_frames = max(num_samples, 8_000) // 160
    rest = (num_frames % 100 - 1) // 2 + 1
    num_tokens = ((rest - 1) // 2 + 1 - 1) // 2 + 1 + num_frames // 100 * 13
    assert (layout.num_frames, layout.num_tokens) == (num_frames, num_tokens)
    assert layout.text == "<|audio_pad|>" * num_tokens


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_spectrogram_equals_that_of_transformers(number: int) -> None:
    golden = read_hearing_golden("qwen3_asr")

    features = golden.processor.compute_features(make_sound(number, golden.lengths[number]))

    assert features.shape == (128, int(golden.arrays[f"num_frames.{number}"]))
    edges = np.concatenate([features[:, :8], features[:, -8:]], axis=1)
    assert np.abs(edges - golden.arrays[f"mel.{number}"]).max() < 1e-5


@pytest.mark.parametrize(
    ("min_length", "num_samples", "complaint"),
    [
        (8_000, 0, "a sound must last >= 6.25e-05 s, given 0 s"),
        (8_000, 19_200_001, "a sound must last <= 1200 s, given 1200.00 s"),
        (0, 200, "a sound must last >= 0.0125625 s, given 0.0125 s"),
    ],
)
def test_a_sound_of_another_length_is_refused(
    tmp_path: Path, min_length: int, num_samples: int, complaint: str
) -> None:
    processor = load(tmp_path, min_length=min_length)
    assert processor is not None

    with pytest.raises(ValueError, match=complaint):
        processor.layout(num_samples)


def test_qwen3_omni_fills_up_no_sound(tmp_path: Path) -> None:
    thinker = {"audio_config": {"num_mel_bins": 128}, "text_config": {}, "vision_config": {}}
    processor = load(tmp_path, {"model_type": "qwen3_omni_moe", "thinker_config": thinker})
    assert processor is not None
    layout = processor.layout(5_000)

    assert (layout.num_frames, layout.num_tokens) == (31, 4)
    with pytest.raises(ValueError, match="a sound must last <= 2400 s"):
        processor.layout(38_400_001)


def test_the_shortest_sounds_have_features(tmp_path: Path) -> None:
    for min_length, num_samples in ((8_000, 1), (0, 201)):
        processor = load(tmp_path, min_length=min_length)
        assert processor is not None
        sound = Sound.from_samples(np.full(num_samples, 99, np.int16))

        assert (
            processor.compute_features(sound).shape[1] == processor.layout(num_samples).num_frames
        )


def test_settings_of_another_extractor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="min_length"):
        load(tmp_path, min_length=-1)
