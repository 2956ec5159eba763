"""Loads checkpoints with vision encoders in their published forms.

The forms differ in the names of tensors and in heads. Errors name wrong keys of config.json.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.graph.anyres import scaled_down
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import read_weights
from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import (
    WEIGHTS,
    add_tensor,
    change_config,
    load_copy,
    read_tensors,
    rename_tensors,
    transpose_tensors,
    write_tensors,
)
from tests.backends.forward import Driver, relative_error
from tests.backends.vision_golden import GOLDEN, VisionGolden, encode_image, read_vision_golden
from tests.engine.requests import run_alone
from tests.release_only import release_only

# Names of tensors in the golden checkpoint, and in checkpoints that other releases wrote.
NAMES = {
    "transformers 4": {"vision_tower.": "vision_tower.vision_model."},
    "transformers 5": {
        "language_model.model.": "model.language_model.",
        "language_model.lm_head.": "lm_head.",
        "vision_tower.": "model.vision_tower.",
        "multi_modal_projector.": "model.multi_modal_projector.",
        "image_newline": "model.image_newline",
    },
}


def copy_golden(name: str, directory: Path) -> VisionGolden:
    golden = read_vision_golden(name)
    return VisionGolden(Path(shutil.copytree(golden.directory, directory / name)), golden.arrays)


# test_vision_configs.py has both releases for other families, without computing.
@pytest.mark.parametrize(
    "release",
    ["transformers 5", *release_only("older names of tensors, computed", "transformers 4")],
)
def test_tensors_are_found_by_older_and_newer_names(release: str, tmp_path: Path) -> None:
    golden = copy_golden("llava_next", tmp_path)
    for prefix, other in NAMES[release].items():
        rename_tensors(golden.directory / WEIGHTS, f'"{prefix}'.encode(), f'"{other}'.encode())
    add_tensor(golden.directory / WEIGHTS, "vision_tower.vision_model.embeddings.position_ids")

    runner = load_copy(golden.directory)

    features = np.concatenate([encode_image(runner, image) for image in golden.images(4)], axis=1)
    assert relative_error(features, golden.arrays["features.4"]) < 1e-5
    result = run_alone(EngineCore(runner), golden.request(1, max_tokens=4))[0]
    assert result.token_ids == golden.greedy(1)[:4]


def test_experts_of_published_qwen3_vl_are_transposed(tmp_path: Path) -> None:
    """Published checkpoints also have older keys of config.json than transformers 5 writes."""
    golden = copy_golden("qwen3_vl_moe", tmp_path)
    transpose_tensors(golden.directory / WEIGHTS, ["mlp.experts."])
    config = json.loads((golden.directory / "config.json").read_text())
    text, vision = config["text_config"], config["vision_config"]
    parameters = text.pop("rope_parameters")
    text |= {
        "num_experts": text.pop("num_local_experts"),
        "norm_topk_prob": True,
        "rope_theta": parameters.pop("rope_theta"),
        "rope_scaling": parameters,
    }
    vision["model_type"] = "qwen3_vl_moe"
    change_config(golden.directory, text_config=text, vision_config=vision)

    result = run_alone(EngineCore(load_copy(golden.directory)), golden.request(1, max_tokens=8))[0]

    assert result.token_ids == golden.greedy(1)[:8]


@pytest.mark.parametrize("inner_size", [32, 64], ids=["square up", "square down"])
def test_a_square_matrix_of_experts_is_stored_in_the_order_of_the_other(
    inner_size: int, tmp_path: Path
) -> None:
    logits = []
    for order in ("transformers 5", "published"):
        golden = copy_golden("qwen3_vl_moe", tmp_path / order)
        fill_experts(golden.directory, inner_size)
        if order == "published":
            transpose_tensors(golden.directory / WEIGHTS, ["mlp.experts."])
        _, computed = Driver(load_copy(golden.directory)).prefill(list(range(5, 17)), 12)
        logits.append(computed)

    assert relative_error(logits[1], logits[0]) < 1e-6


def fill_experts(directory: Path, inner_size: int) -> None:
    """Replaces the experts of a mixture with hidden size 64 by experts of another inner size."""
    text = json.loads((directory / "config.json").read_text())["text_config"]
    change_config(directory, text_config=text | {"moe_intermediate_size": inner_size})
    entries, contents = read_tensors(directory / WEIGHTS)
    sizes = {"gate_up_proj": (2 * inner_size, 64), "down_proj": (64, inner_size)}
    for name, entry in entries.items():
        if ".mlp.experts." in name:
            shape = (entry["shape"][0], *sizes[name.rpartition(".")[2]])
            values = np.random.default_rng(len(name)).standard_normal(shape, np.float32) / 8
            upper_half = (values.view(np.uint32) >> 16).astype(np.uint16)  # bfloat16
            entry["shape"], contents[name] = list(shape), upper_half.tobytes()
    write_tensors(directory / WEIGHTS, entries, contents)


# Names of tensors in published checkpoints, and in checkpoints of newer releases.
PADDLE_NAMES = {
    "mlp_AR.": "model.projector.",
    "visual.": "model.visual.",
    "model.layers.": "model.language_model.layers.",
    "model.embed_tokens.": "model.language_model.embed_tokens.",
}


@pytest.mark.parametrize("names", [{}, PADDLE_NAMES], ids=["published", "transformers 5"])
def test_published_paddleocr_vl_has_no_text_config(names: dict[str, str], tmp_path: Path) -> None:
    golden = copy_golden("paddleocr_vl", tmp_path)
    path = golden.directory / "config.json"
    config = json.loads(path.read_text())
    text = config.pop("text_config")
    parameters = text.pop("rope_parameters")
    text["rope_theta"] = parameters.pop("rope_theta")
    config["vision_config"]["model_type"] = "paddleocr_vl"
    path.write_text(json.dumps(text | config | {"rope_scaling": {**parameters, "type": "default"}}))
    add_tensor(golden.directory / WEIGHTS, "visual.vision_model.head.probe")
    packing = "visual.vision_model.embeddings.packing_position_embedding.weight"
    add_tensor(golden.directory / WEIGHTS, packing)
    for name, other in names.items():
        rename_tensors(golden.directory / WEIGHTS, f'"{name}'.encode(), f'"{other}'.encode())

    runner = load_copy(golden.directory)

    result = run_alone(EngineCore(runner), golden.request(1, max_tokens=8))[0]
    assert result.token_ids == golden.greedy(1)[:8]


def test_an_error_names_an_unknown_tensor_of_an_encoder(tmp_path: Path) -> None:
    golden = copy_golden("llava", tmp_path)
    add_tensor(golden.directory / WEIGHTS, "vision_tower.encoder.layers.0.note.weight")
    with pytest.raises(
        ModelLoadError,
        match=r"tensor vision_tower.encoder.layers.0.note.weight is in the checkpoint",
    ):
        load_copy(golden.directory)


# Each case: the checkpoint, and tie_word_embeddings beside text_config and in it.
HEADS = {
    "tied in text_config only": ("mistral3", False, True),
    "a head, which beside text_config is tied": ("llava_next", True, False),
    "a head, which in text_config is tied": ("llava_next", False, True),
}


@pytest.mark.parametrize(
    "case",
    [
        "tied in text_config only",
        "a head, which in text_config is tied",
        *release_only(
            "heads of checkpoints with encoders", "a head, which beside text_config is tied"
        ),
    ],
)
def test_the_tensors_decide_whether_the_head_is_the_embedding(case: str, tmp_path: Path) -> None:
    name, beside, inside = HEADS[case]
    golden = copy_golden(name, tmp_path)
    text = json.loads((golden.directory / "config.json").read_text())["text_config"]
    change_config(
        golden.directory,
        tie_word_embeddings=beside,
        text_config=text | {"tie_word_embeddings": inside},
    )

    for _ in ("from the checkpoint", "from the cache"):
        engine = EngineCore(load_copy(golden.directory))
        result = run_alone(engine, golden.request(1, max_tokens=4))[0]
        assert result.token_ids == golden.greedy(1)[:4]


# Each case: the checkpoint, the keys of vision_config that change, and the error.
VISION: dict[str, tuple[str, dict[str, Any], str]] = {  # Any: JSON
    "another encoder": (
        "llava",
        {"model_type": "dinov2"},
        'model_type "dinov2" is not supported; supported: clip_vision',
    ),
    "heads do not divide": (
        "llava",
        {"num_attention_heads": 3},
        "hidden_size 32 is no multiple of .*heads 3",
    ),
    "a patch larger than the tile": (
        "llava",
        {"patch_size": 24},
        "patch_size must be <= image_size 23, found 24",
    ),
    "a tile that is no square": (
        "llava",
        {"image_size": [23, 24]},
        r"image_size \[23, 24\] is not supported; supported: squares",
    ),
    "three sides": (
        "llava",
        {"image_size": [23] * 3},
        "image_size must be a list of 2 integers",
    ),
    "a side of 0": ("llava", {"image_size": [0, 0]}, "image_size must be a positive integer"),
    "a huge tile": (
        "llava",
        {"image_size": 2**20},
        "position_embedding.weight has the shape",
    ),
    "one channel": ("llava", {"num_channels": 1}, "num_channels 1 is not supported"),
    "layers without tensors": (
        "llava-siglip",
        {"num_hidden_layers": 6},
        "encoder.layers.5.layer_norm1.weight is",
    ),
    "heads of an odd size": (
        "pixtral",
        {"num_attention_heads": 16},
        "multiple of four times num_attention_heads 16",
    ),
    "another size of heads": (
        "pixtral",
        {"head_dim": 8},
        "head_dim 8 is not supported; supported: 16",
    ),
    "another kind of positions": (
        "pixtral",
        {"rope_parameters": {"rope_type": "yarn"}},
        'rope_type "yarn" is not supported',
    ),
    "a theta of 0": (
        "pixtral",
        {"rope_parameters": {"rope_theta": 0.0}},
        "rope_theta 0.0 is not supported",
    ),
    "CLIP in Mistral 3": ("mistral3", {"model_type": "clip_vision_model"}, "supported: pixtral"),
}
# Each case: the checkpoint, the keys of config.json that change, and the error.
WHOLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a layer above the last": (
        "llava",
        {"vision_feature_layer": 7},
        "vision_feature_layer 7 .* layers from -7 to 6",
    ),
    "a layer below the first": (
        "llava",
        {"vision_feature_layer": [-1, -8]},
        r"vision_feature_layer \[-1, -8\] is not",
    ),
    "no layer": (
        "llava",
        {"vision_feature_layer": []},
        r"vision_feature_layer \[\] is not supported",
    ),
    "another strategy": (
        "llava",
        {"vision_feature_select_strategy": "cls"},
        'strategy "cls" is not .* default, full',
    ),
    "Pixtral without a patch": (
        "pixtral",
        {"vision_feature_select_strategy": "default"},
        'select_strategy "default" is not supported; supported: full',
    ),
    "two layers to merge": (
        "mistral3",
        {"vision_feature_layer": [0, -1]},
        r"\[0, -1\] is not .* one layer",
    ),
    "another merge": (
        "mistral3",
        {"spatial_merge_size": 3},
        r"merging_layer.weight has the shape \[32, 128\]",
    ),
    "no resolution": (
        "llava_next",
        {"image_grid_pinpoints": []},
        "must be a list of 1 to 256 resolutions",
    ),
    "a number as a resolution": (
        "llava_next",
        {"image_grid_pinpoints": [14]},
        "must be a list of integers, found 14",
    ),
    "a part of a tile": (
        "llava_next",
        {"image_grid_pinpoints": [[14, 20]]},
        "multiples of image_size 14, found 14x20",
    ),
    "negative tiles": (
        "llava_next",
        {"image_grid_pinpoints": [[-14, 14]]},
        "image_size 14, found -14x14",
    ),
    "a row too many": (
        "llava_next",
        {"vision_feature_select_strategy": "full"},
        "supported: default, as a tile must have 9 rows",
    ),
    "a row too few": (
        "llava_onevision",
        {"vision_feature_select_strategy": "default"},
        "supported: full, as a tile must have 9 rows",
    ),
    "no limit of tiles": (
        "llava_onevision",
        {"vision_aspect_ratio": "anyres"},
        '"anyres" is not .* anyres_max_1 to',
    ),
}


@pytest.mark.parametrize("case", [*VISION, *WHOLE])
def test_an_error_names_the_wrong_key_of_config_json(case: str) -> None:
    name, changes, message = VISION.get(case) or WHOLE[case]
    config = json.loads((GOLDEN / name / "config.json").read_text())
    config |= changes if case in WHOLE else {"vision_config": config["vision_config"] | changes}
    with pytest.raises(ModelLoadError, match=message) as refused:
        measure_checkpoint(GOLDEN / name, HfConfig(config), read_weights("auto"))
    assert "\n" not in str(refused.value)


def test_a_very_long_image_may_be_scaled_down_to_no_rows() -> None:
    assert scaled_down(np.ones((1, 300, 4), np.float32), 9).shape == (0, 51, 4)
