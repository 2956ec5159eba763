"""Whisper models that optimum exported as OpenVINO IR give their weights to Ouzel's own graphs."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.backends.openvino.weights.whisper_ir import DECODER_FILE, ENCODER_FILE, WhisperIr
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.errors import ModelLoadError
from tests.backends.forward import relative_error
from tests.backends.speech_goldens import (
    SPEECH,
    Array,
    SpeechGolden,
    compute_logits,
    fill_slot,
    load_speech,
    read_speech_golden,
)

EXPORTED = Path(__file__).parent / "optimum_ir_speech"
SOURCE = SPEECH / "whisper"
FP32, INT8 = EXPORTED / "whisper-fp32", EXPORTED / "whisper-int8"


def copy_small_files(graphs: Path, directory: Path) -> Path:
    """Makes the directory that optimum writes: the graphs beside the small files of the source."""
    shutil.copytree(graphs, directory)
    for file in SOURCE.iterdir():
        if file.suffix == ".json":
            shutil.copy(file, directory)
    return directory


def list_tensors() -> list[Tensor]:
    source = Checkpoint(SOURCE)
    located = {name: source.find(name) for name in source.names()}
    return [Tensor(name, each.shape) for name, each in located.items() if each is not None]


def read(weights: WhisperIr | Checkpoint, tensor: Tensor) -> Array:
    return np.concatenate([each.reshape(-1) for each in weights.rows(tensor)])


def test_every_tensor_is_found_with_its_values() -> None:
    source, exact, rounded = Checkpoint(SOURCE), WhisperIr(FP32), WhisperIr(INT8)
    tensors = list_tensors()
    assert len(tensors) > 50
    for tensor in tensors:
        expected = read(source, tensor)
        np.testing.assert_array_equal(read(exact, tensor), expected, err_msg=tensor.name)
        largest = max(np.ptp(expected) / 255, 1e-3)  # one step of 256
        assert np.abs(read(rounded, tensor) - expected).max() <= largest, tensor.name


def test_an_exported_model_has_transformers_logits(tmp_path: Path) -> None:
    golden = read_speech_golden("whisper")
    directory = copy_small_files(FP32, tmp_path / "whisper")
    exported = SpeechGolden(
        directory,
        golden.mel_seed,
        golden.encoded,
        golden.tokens,
        golden.logits,
        golden.attention,
    )
    runner = load_speech(exported, tmp_path / "cache")
    fill_slot(runner, exported.audio(), 0)
    [logits] = compute_logits(runner, [(0, golden.tokens, 0, 0)])
    assert relative_error(logits, golden.logits) < 1e-4


def test_integers_are_told_in_the_form_of_the_weights(tmp_path: Path) -> None:
    directory = copy_small_files(INT8, tmp_path / "whisper")
    stored = find_weights(directory, read_hf_config(directory))
    _, form = stored.open()
    assert form == "OpenVINO IR of f16, u8"
    assert sorted(file.suffix for file in stored.files) == [".bin", ".bin", ".xml", ".xml"]


def test_safetensors_go_before_the_graphs(tmp_path: Path) -> None:
    directory = copy_small_files(FP32, tmp_path / "whisper")
    shutil.copy(SOURCE / "model.safetensors", directory)
    stored = find_weights(directory, read_hf_config(directory))
    assert [file.name for file in stored.files] == ["model.safetensors"]


def test_a_missing_constant_is_named() -> None:
    with pytest.raises(ModelLoadError, match=r"no constant for model\.layers\.9\.fc1\.weight"):
        list(WhisperIr(FP32).rows(Tensor("model.layers.9.fc1.weight", (64, 32))))


def test_another_shape_is_refused() -> None:
    [tensor] = [each for each in list_tensors() if each.name == "model.layers.0.fc1.weight"]
    wrong = Tensor(tensor.name, (tensor.shape[0], tensor.shape[1] + 1))
    with pytest.raises(ModelLoadError, match=r"has the shape .*, but config\.json requires"):
        list(WhisperIr(FP32).rows(wrong))


def test_a_broken_graph_is_refused(tmp_path: Path) -> None:
    directory = copy_small_files(FP32, tmp_path / "whisper")
    (directory / ENCODER_FILE).write_text("<net")
    with pytest.raises(ModelLoadError, match=rf"{ENCODER_FILE} is no graph of OpenVINO"):
        WhisperIr(directory)
    (directory / DECODER_FILE).unlink()
