"""Tests Whisper's encoder and decoder against transformers in f32: slots, chunks, batches."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.runners.alignment import filter_by_median
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import load_copy
from tests.backends.forward import relative_error
from tests.backends.speech_goldens import (
    NAMES,
    ROW_STEP,
    Array,
    SpeechGolden,
    compute_logits,
    fill_slot,
    load_speech,
    read_speech_golden,
)


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> SpeechGolden:
    return read_speech_golden(request.param)


@pytest.fixture(scope="module")
def runner(golden: SpeechGolden, tmp_path_factory: pytest.TempPathFactory) -> OpenVINORunner:
    return load_speech(golden, tmp_path_factory.mktemp("speech"))


def compute_features(runner: OpenVINORunner, golden: SpeechGolden) -> Array:
    assert runner.audio is not None
    parts = runner.audio.compute_features(golden.audio())
    while True:
        try:
            next(parts)
        except StopIteration as done:
            rows: Array = done.value
            return rows


def test_the_encoder_equals_transformers(runner: OpenVINORunner, golden: SpeechGolden) -> None:
    rows = compute_features(runner, golden)
    assert len(rows) == 1500
    assert np.abs(rows[::ROW_STEP] - golden.encoded).max() < 1e-4


def test_the_logits_equal_transformers(runner: OpenVINORunner, golden: SpeechGolden) -> None:
    fill_slot(runner, golden.audio(), 0)
    [logits] = compute_logits(runner, [(0, golden.tokens, 0, 0)])
    assert relative_error(logits, golden.logits) < 1e-4


def test_chunks_of_a_prompt_attend_to_the_same_sound(
    runner: OpenVINORunner, golden: SpeechGolden
) -> None:
    fill_slot(runner, golden.audio(), 2)
    [first] = compute_logits(runner, [(3, golden.tokens[:5], 0, 2)])
    [rest] = compute_logits(runner, [(3, golden.tokens, 5, 2)])
    assert relative_error(np.concatenate([first, rest]), golden.logits) < 1e-4


def test_sequences_of_a_batch_attend_to_their_own_sounds(
    runner: OpenVINORunner, golden: SpeechGolden
) -> None:
    """The sequence of another sound has other logits; the golden ones stay the same."""
    fill_slot(runner, golden.audio(seed=1), 1)
    fill_slot(runner, golden.audio(), 3)
    other, own = compute_logits(runner, [(0, golden.tokens, 0, 1), (2, golden.tokens, 0, 3)])
    assert relative_error(own, golden.logits) < 1e-4
    assert relative_error(other, golden.logits) > 1e-3


def test_a_slot_takes_another_sound(runner: OpenVINORunner, golden: SpeechGolden) -> None:
    fill_slot(runner, golden.audio(seed=1), 0)
    fill_slot(runner, golden.audio(), 0)
    [logits] = compute_logits(runner, [(0, golden.tokens, 0, 0)])
    assert relative_error(logits, golden.logits) < 1e-4


def test_the_alignment_follows_the_attention_of_the_alignment_heads(
    runner: OpenVINORunner, golden: SpeechGolden
) -> None:
    """The reference is transformers' attention, which float16 rounds, normalised here."""
    fill_slot(runner, golden.audio(), 0)
    compute_logits(runner, [(0, golden.tokens, 0, 0)])
    found = runner.align(runner.read_cross_queries().copy(), 0, 1500)
    weights = golden.attention
    mean, deviation = (f(axis=1, keepdims=True) for f in (weights.mean, weights.std))
    expected = filter_by_median((weights - mean) / deviation).mean(axis=0)
    assert found.shape == (len(golden.tokens), 1500)
    assert relative_error(found, expected) < 0.02


def test_the_median_filter_equals_a_sort() -> None:
    rows = np.random.default_rng(0).normal(size=(2, 3, 40)).astype(np.float32)
    padded = np.pad(rows, ((0, 0), (0, 0), (3, 3)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 7, axis=2)
    assert np.array_equal(filter_by_median(rows), np.median(windows, axis=3))
    short = rows[..., :3]
    assert filter_by_median(short) is short


def test_the_serving_precision_stays_near_to_transformers(
    golden: SpeechGolden, tmp_path: Path
) -> None:
    runner = load_speech(golden, tmp_path, EngineConfig(num_threads=1), "int8")
    fill_slot(runner, golden.audio(), 0)
    [logits] = compute_logits(runner, [(0, golden.tokens, 0, 0)])
    assert relative_error(logits, golden.logits) < 0.08


def test_the_facts_of_the_sound_are_told(runner: OpenVINORunner, golden: SpeechGolden) -> None:
    audio = runner.info.audio
    assert audio is not None
    assert (audio.num_mel_bins, audio.num_frames, audio.num_encoder_frames) == (
        golden.num_bins,
        3000,
        1500,
    )
    assert audio.can_align
    assert runner.info.task == "transcribe"
    assert runner.info.max_model_len == 64


def test_alignment_heads_that_the_decoder_lacks_are_refused(tmp_path: Path) -> None:
    directory = shutil.copytree(read_speech_golden("whisper").directory, tmp_path / "whisper")
    (directory / "generation_config.json").write_text('{"alignment_heads": [[2, 0]]}')
    with pytest.raises(ModelLoadError, match=r"alignment_heads must be .* below \[2, 4\]"):
        load_copy(directory)


@pytest.mark.parametrize("task", ["generate", "embed", "score"])
def test_a_speech_model_does_nothing_else(task: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="only transcribes"):
        load_copy(read_speech_golden("whisper").directory, cache_dir=str(tmp_path), task=task)
