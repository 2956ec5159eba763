"""Reads config.json of Granite 4 Vision, and loads a language model of another Granite family."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.config.weights import read_weights
from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import (
    WEIGHTS,
    change_config,
    join_tensors,
    load_copy,
    rename_tensors,
)
from tests.backends.forward import relative_error
from tests.backends.vision_golden import GOLDEN, VisionGolden, encode_image, read_vision_golden
from tests.engine.requests import run_alone

# Each case: the keys of config.json that change, and the error.
CASES: dict[str, tuple[dict[str, Any], str]] = {  # Any: JSON values
    "no rate": ({"downsample_rate": None}, "downsample_rate is missing"),
    "a number as a rate": ({"downsample_rate": 0.5}, "downsample_rate must be a string"),
    "a rate without a slash": (
        {"downsample_rate": "0.5"},
        'downsample_rate "0.5" is not supported; supported: two integers',
    ),
    "a third": ({"downsample_rate": "1/3"}, 'downsample_rate "1/3" is not .* halves'),
    "no queries": ({"downsample_rate": "0/0"}, 'downsample_rate "0/0" is not .* halves'),
    "windows that do not fill a tile": (
        {"downsample_rate": "3/6"},
        "downsample_rate must have a divisor of the 8 patches .* found 3/6",
    ),
    "no pairs": (
        {"deepstack_layer_map": None},
        "deepstack_layer_map must be a list of 1 to 64 pairs of layers, found null",
    ),
    "a pair of three": (
        {"deepstack_layer_map": [[1, 2, 3]]},
        "deepstack_layer_map must be a list of 2 integers",
    ),
    "a layer above the tower's": (
        {"deepstack_layer_map": [[4, 0]]},
        r"deepstack_layer_map \[\[4, 0\]\] is not supported; .* layers from -4 to 3",
    ),
    "a corner of a layer below the tower": (
        {"spatial_vision_layer": -5},
        "spatial_vision_layer -5 is not supported; supported: layers from -4 to 3",
    ),
    "a layer above the language model's": (
        {"deepstack_layer_map": [[0, 6]]},
        r"from 0 to 5, found \[1, 2, 4, 5, 6\]",
    ),
    "a negative layer of the language model": (
        {"spatial_target_layers": [-1]},
        r"from 0 to 5, found \[-1, 0, 3\]",
    ),
    "the targets of published models": (
        {"spatial_target_layers": None},
        r"from 0 to 5, found \[0, 3, 12, 15, 18, 21\]",
    ),
    "one layer twice": (
        {"spatial_target_layers": [5, 3]},
        r"each layer of the language model once, found \[0, 3, 3, 5\]",
    ),
    "five corners": (
        {"spatial_target_layers": [1, 2, 3, 4, 5]},
        "spatial_target_layers .* is not supported; supported: at most 4 layers",
    ),
    "no corners": (
        {"use_spatial_sampling": False},
        "use_spatial_sampling false is not supported; supported: only true",
    ),
    "larger squares": ({"spatial_stride": 4}, "spatial_stride 4 is not supported"),
    "no newlines": ({"use_image_newline_parameter": False}, "newline_parameter false is not"),
    "another strategy": (
        {"vision_feature_select_strategy": "default"},
        "supported: full, as a tile must have 64 rows",
    ),
    "a part of a tile": (
        {"image_grid_pinpoints": [[17, 20]]},
        "multiples of image_size 17, found 17x20",
    ),
    "another Q-Former": (
        {"qformer_config": {"model_type": "instructblip_qformer"}},
        'qformer_config: model_type "instructblip_qformer" is not supported',
    ),
    "layers of the Q-Former as in transformers": (
        {"qformer_config": {"num_hidden_layers": None}},
        r"qformer.encoder.layer.1.attention.* is missing",
    ),
    "a thousand layers of the Q-Former": (
        {"qformer_config": {"num_hidden_layers": 1000}},
        "num_hidden_layers 1000 is not supported; supported: 1 to 32",
    ),
    "the inner size of published Q-Formers": (
        {"qformer_config": None},
        r"intermediate_query.dense.* has the shape \[40.* requires \[3072",
    ),
    "a small tower": (
        {"vision_config": {"hidden_size": 32}},
        "hidden_size 32 must be at least 64",
    ),
    "heads that do not fit": (
        {"vision_config": {"hidden_size": 194, "num_attention_heads": 2}},
        "hidden_size 194 must be .* the 3 heads",
    ),
    "another tower": (
        {"vision_config": {"model_type": "vit"}},
        'model_type "vit" is not supported; supported: clip_vision_model, siglip_vision_model',
    ),
    "another language model": (
        {"text_config": {"model_type": "llama"}},
        "model_type must be one of granite4_vision_text, granite, granitemoehybrid, found llama",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_names_the_wrong_key_of_config_json(case: str) -> None:
    changes, message = CASES[case]
    config = json.loads((GOLDEN / "granite4_vision" / "config.json").read_text())
    for key, value in changes.items():
        config[key] = config[key] | value if isinstance(value, dict) else value
    with pytest.raises(ModelLoadError, match=message) as refused:
        measure_checkpoint(GOLDEN / "granite4_vision", HfConfig(config), read_weights("auto"))
    assert "\n" not in str(refused.value)


def test_keys_of_published_checkpoints_are_read() -> None:
    directory = GOLDEN / "granite4_vision"
    config = read_hf_config(directory).with_values(
        use_spatial_sampling=True, spatial_stride=2, use_image_newline_parameter=True
    )
    measure_checkpoint(directory, config, read_weights("auto"))


@pytest.mark.parametrize("text_type", ["granite", "granitemoehybrid"])
def test_features_enter_other_granite_models_unscaled(text_type: str, tmp_path: Path) -> None:
    """Granite 4.0 Vision has a granitemoehybrid with attention in every layer and no experts."""
    golden = read_vision_golden("granite4_vision")
    copy = VisionGolden(
        Path(shutil.copytree(golden.directory, tmp_path / text_type)), golden.arrays
    )
    text = json.loads((copy.directory / "config.json").read_text())["text_config"]
    text["model_type"] = text_type
    if text_type == "granitemoehybrid":
        text |= {
            "layer_types": ["attention"] * 6,
            "num_local_experts": 0,
            "shared_intermediate_size": text["intermediate_size"],
            "position_embedding_type": "rope",
            "mamba_n_heads": 4,
        }
        for layer in range(6):
            prefix = f"model.language_model.layers.{layer}."
            names = [f"{prefix}mlp.{each}_proj.weight" for each in ("gate", "up")]
            join_tensors(copy.directory / WEIGHTS, names, f"{prefix}shared_mlp.input_linear.weight")
        rename_tensors(copy.directory / WEIGHTS, b"mlp.down_proj", b"shared_mlp.output_linear")
    change_config(copy.directory, text_config=text)

    runner = load_copy(copy.directory)

    features = np.concatenate([encode_image(runner, image) for image in copy.images(4)], axis=1)
    assert relative_error(features, golden.arrays["features.4"]) < 1e-5
    result = run_alone(EngineCore(runner), copy.request(2))[0]
    assert result.token_ids == golden.greedy(2)
