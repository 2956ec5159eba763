"""Gemma 3n's config.json, unsupported values, and checkpoints with images and sound."""

import json
import re
import shutil
from pathlib import Path

import pytest

from ouzel.backends.openvino.models.gemma3n_text import DEFAULTS, read_shape
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import add_tensor, rename_tensors
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error


def read_config_with(**changes: object) -> HfConfig:
    values = read_hf_config(GOLDEN / "gemma3n").values
    return HfConfig({**values, **changes})


def test_e4b_leaves_out_nothing_that_the_defaults_lack() -> None:
    shape = read_shape(HfConfig({"model_type": "gemma3n_text"}).with_defaults(**DEFAULTS))
    layers = shape.decoder.layers
    assert [layer.sliding_window for layer in layers] == [512, 512, 512, 512, 0] * 7
    assert [layer.cache for layer in layers] == [*range(20), *[18, 18, 18, 18, 19] * 3]
    assert {layer.inner_size for layer in layers} == {16_384}
    for cutoff in shape.cutoffs[:10]:
        assert cutoff == pytest.approx(1.6448536)
    assert set(shape.cutoffs[10:]) == {None}
    assert (shape.num_streams, shape.active, shape.scales_active) == (4, 0, True)
    assert shape.decoder.embedding_factor == 45.25  # the root of 2048 in bf16


def test_both_spellings_of_rotary_positions_mean_the_same() -> None:
    older, newer = (
        read_shape(read_config_with(**keys)).decoder.ropes
        for keys in (
            {"rope_theta": 5e5, "rope_local_base_freq": 2e4},
            {
                "rope_theta": None,
                "rope_local_base_freq": None,
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 5e5},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
                },
            },
        )
    )
    for kind, rope in older.items():
        assert (rope.inverse_frequencies == newer[kind].inverse_frequencies).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"altup_active_idx": 4}, "altup_active_idx must be >= 0 and < altup_num_inputs 4, found"),
        ({"num_kv_shared_layers": 3}, "num_kv_shared_layers must leave a layer of each kind of 4"),
        ({"intermediate_size": [48, 48]}, "intermediate_size must be a list of 4 integers"),
        ({"intermediate_size": [48, 48, 0, 48]}, "intermediate_size must be"),
        ({"activation_sparsity_pattern": [0.5]}, "activation_sparsity_pattern must be a list of 4"),
        ({"activation_sparsity_pattern": [1, 0, 0, 0]}, "pattern must be >= 0 and < 1, found 1"),
        ({"num_key_value_heads": 3}, "num_attention_heads 4 is no multiple of num_key_value_heads"),
    ],
)
def test_unsupported_settings_are_refused_by_name(
    changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ModelLoadError, match=re.escape(sentence)):
        read_shape(read_config_with(**changes))


def test_encoders_of_images_and_sound_are_left_out(
    tmp_path: Path, load: Load, caplog: pytest.LogCaptureFixture
) -> None:
    golden, directory = read_golden("gemma3n"), tmp_path / "model"
    shutil.copytree(golden.directory, directory)
    text = json.loads((directory / "config.json").read_text())
    whole = {
        "model_type": "gemma3n",
        "dtype": text.pop("dtype"),
        "text_config": text,
        "vision_config": {"model_type": "gemma3n_vision"},
        "audio_config": {"model_type": "gemma3n_audio"},
    }
    (directory / "config.json").write_text(json.dumps(whole))
    rename_tensors(directory / "model.safetensors", b'"model.', b'"model.language_model.')
    for part in ("vision_tower", "audio_tower", "embed_vision", "embed_audio"):
        add_tensor(directory / "model.safetensors", f"model.{part}.norm.weight")
    with caplog.at_level("INFO", logger="ouzel"):
        _, logits = Driver(load(directory)).prefill(golden.prompt, 7)
    assert relative_error(logits, golden.logits) < 1e-5
    assert "serving the language model gemma3n_text" in caplog.text
    assert "unused parts of the checkpoint: audio_tower, embed_vision" in caplog.text
