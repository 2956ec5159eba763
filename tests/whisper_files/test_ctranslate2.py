"""Tests that CTranslate2's Whisper models are read as the same checkpoints in safetensors."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from ouzel.model_store.kept import read_kept
from ouzel.model_store.model_directory import locate_model
from ouzel.whisper_files.model_directory import make_whisper_directory
from tests.backends.quantize import load
from tests.whisper_files.reading import open_tensors, read_json, read_parts, read_rows
from tests.whisper_files.writers import (
    Arrays,
    name_variables,
    round_to_int8,
    write_ctranslate2,
)

GOLDEN = Path(__file__).parents[1] / "backends" / "golden_speech" / "whisper"
NUM_HEADS = 4
MATRIX = "model.decoder.layers.1.encoder_attn.v_proj.weight"


def load_golden() -> dict[str, NDArray[np.float32]]:
    return {
        name: values.astype(np.float32)
        for name, (_, values) in load(GOLDEN / "model.safetensors").items()
    }


def store(directory: Path, variables: Arrays, num_heads: int = NUM_HEADS) -> Path:
    """Writes a directory as CTranslate2's converter does."""
    directory.mkdir()
    write_ctranslate2(directory / "model.bin", variables, num_heads)
    shutil.copy(GOLDEN / "tokenizer.json", directory)
    generation = read_json(GOLDEN / "generation_config.json")
    config = {
        "alignment_heads": generation["alignment_heads"],
        "lang_ids": sorted(generation["lang_to_id"].values()),
        "suppress_ids": generation["suppress_tokens"],
        "suppress_ids_begin": generation["begin_suppress_tokens"],
    }
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def as_f16(variables: Arrays) -> Arrays:
    return {name: array.astype(np.float16) for name, array in variables.items()}


@pytest.mark.parametrize("change", [dict, as_f16], ids=["f32", "f16"])
def test_plain_tensors_are_those_of_the_checkpoint(
    tmp_path: Path, change: Callable[[Arrays], Arrays]
) -> None:
    golden = load_golden()
    stored = store(tmp_path / "tiny", change(name_variables(golden)))
    tensors = open_tensors(make_whisper_directory(stored, tmp_path / "cache"))
    for name, expected in golden.items():
        assert np.array_equal(read_rows(tensors, name, expected.shape), expected), name
        assert tensors.stored_form(Tensor(_plain(name), expected.shape)) is None
    assert set(tensors.names()) == {_plain(name) for name in golden}


def _plain(name: str) -> str:
    return name.replace("model.decoder.", "model.")


def test_int8_stays_int8_and_has_the_scales_of_its_rows(tmp_path: Path) -> None:
    golden = load_golden()
    stored = store(tmp_path / "tiny", round_to_int8(name_variables(golden)))
    tensors = open_tensors(make_whisper_directory(stored, tmp_path / "cache"))
    for name, expected in golden.items():
        rows = read_rows(tensors, name, expected.shape)
        step = np.abs(expected).max() / 127
        assert np.abs(rows - expected).max() <= 0.51 * step, name
        if expected.ndim == 2 and "positions" not in name:
            parts = read_parts(tensors, name, expected.shape)
            assert np.allclose(parts, rows, rtol=1e-6, atol=0), name
    matrix = Tensor(_plain(MATRIX), golden[MATRIX].shape)
    assert tensors.stored_form(matrix) == StoredForm("int8", 8)
    conv = "model.encoder.conv1.weight"
    assert tensors.stored_encoding(Tensor(conv, golden[conv].shape)) is None


def test_only_integers_count_as_compressed(tmp_path: Path) -> None:
    variables = name_variables(load_golden())
    plain = make_whisper_directory(store(tmp_path / "plain", as_f16(variables)), tmp_path / "cache")
    int8 = make_whisper_directory(
        store(tmp_path / "int8", round_to_int8(variables)), tmp_path / "cache"
    )
    found = [find_weights(each, HfConfig({})) for each in (plain, int8)]
    assert [each.compressed_as for each in found] == ["", "CTranslate2"]
    assert [each.open()[1] for each in found] == ["CTranslate2 of F16", "CTranslate2 of F32, I8"]


def test_int16_has_one_scale(tmp_path: Path) -> None:
    golden = load_golden()
    variables = dict(name_variables(golden))
    name = "decoder/embeddings/weight"
    scale = np.float32(32767 / np.abs(variables[name]).max())
    variables[f"{name}_scale"] = np.array(scale)
    variables[name] = np.rint(variables[name] * scale).astype(np.int16)
    stored = store(tmp_path / "tiny", variables)
    tensors = open_tensors(make_whisper_directory(stored, tmp_path / "cache"))
    expected = golden["model.decoder.embed_tokens.weight"]
    rows = read_rows(tensors, "model.decoder.embed_tokens.weight", expected.shape)
    assert np.allclose(rows, expected, atol=1e-3)


def test_the_small_files_say_what_the_checkpoint_says(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()))
    made = make_whisper_directory(stored, tmp_path / "cache")
    config, golden = read_json(made / "config.json"), read_json(GOLDEN / "config.json")
    assert config == {name: golden[name] for name in config}
    names = ("generation_config.json", "preprocessor_config.json", "tokenizer_config.json")
    for name in names:
        expected = read_json(GOLDEN / name)
        ours = read_json(made / name)
        assert {key: ours[key] for key in ours if key in expected} == {
            key: expected[key] for key in expected if key in ours
        }
        assert expected.keys() - ours.keys() <= {"transformers_version", "dither"}
    assert (made / "tokenizer.json").resolve() == stored / "tokenizer.json"


def test_heads_have_64_columns_if_the_file_does_not_tell(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()), num_heads=0)
    config = read_json(make_whisper_directory(stored, tmp_path / "cache") / "config.json")
    assert config["encoder_attention_heads"] == config["decoder_attention_heads"] == 1


def test_a_directory_is_made_again_only_if_its_files_change(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()))
    made = make_whisper_directory(stored, tmp_path / "cache")
    note = made / "config.json"
    note.write_text("{}")
    assert make_whisper_directory(stored / "model.bin", tmp_path / "cache") == made
    assert note.read_text() == "{}"
    os.utime(stored / "config.json", (1, 1))
    make_whisper_directory(stored, tmp_path / "cache")
    assert read_json(note)["model_type"] == "whisper"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder/conv1/weight": None}, r"tensor model.encoder.conv1.weight .* found none"),
        (
            {"decoder/layer_0/attention/linear_1/weight": np.zeros((129, 64), np.float32)},
            "must consist of 2 parts",
        ),
        ({"decoder/embeddings/weight": np.zeros((1804, 64), np.int8)}, "_scale must have 1 or"),
    ],
)
def test_wrong_tensors_are_named(
    tmp_path: Path,
    change: dict[str, NDArray[np.float32] | None],
    message: str,
) -> None:
    changed = name_variables(load_golden()) | change
    variables = {name: array for name, array in changed.items() if array is not None}
    stored = store(tmp_path / "tiny", variables)
    with pytest.raises(ModelLoadError, match=message):
        make_whisper_directory(stored, tmp_path / "cache")


def test_a_file_that_ends_anywhere_is_refused(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", {"a/weight": np.zeros((2, 3), np.float16)})
    file = stored / "model.bin"
    content = file.read_bytes()
    for length in range(18, len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(ModelLoadError, match=r"truncated|twice|must"):
            make_whisper_directory(stored, tmp_path / "cache")


@pytest.mark.parametrize(
    ("version", "name", "message"),
    [(3, "WhisperSpec", "version must be 4 to 6"), (6, "TransformerSpec", "no Whisper model")],
)
def test_other_models_of_ctranslate2_are_refused(
    tmp_path: Path, version: int, name: str, message: str
) -> None:
    write_ctranslate2(tmp_path / "model.bin", {}, version=version, name=name)
    with pytest.raises(ModelLoadError, match=message):
        make_whisper_directory(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", '{"suppress_ids": [-1]}', "suppress_ids"),
        ("config.json", '{"alignment_heads": [[1]]}', "alignment_heads"),
        ("tokenizer.json", '{"added_tokens": []}', r"has no token <\|endoftext\|>, "),
    ],
)
def test_wrong_small_files_are_named(tmp_path: Path, file: str, content: str, message: str) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()))
    (stored / file).write_text(content)
    with pytest.raises(ModelLoadError, match=message):
        make_whisper_directory(stored, tmp_path / "cache")


def test_the_model_store_makes_the_directory_and_lists_it(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()))
    cache = tmp_path / "cache"
    local = locate_model(str(stored), str(cache))
    assert local.name == "tiny"
    assert locate_model(str(stored / "model.bin"), str(cache)) == local
    entry = read_kept(local.directory)
    assert entry is not None
    assert (entry.kind, entry.name, entry.stale) == ("whisper", "tiny", "")
    os.utime(stored / "model.bin", (1, 1))
    changed = read_kept(local.directory)
    assert changed is not None
    assert changed.stale == "its file has changed"


def test_a_tokenizer_is_required(tmp_path: Path) -> None:
    stored = store(tmp_path / "tiny", name_variables(load_golden()))
    (stored / "tokenizer.json").unlink()
    with pytest.raises(ModelLoadError, match=r"must have tokenizer.json beside model.bin"):
        make_whisper_directory(stored, tmp_path / "cache")
