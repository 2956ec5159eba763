"""Checkpoints that see, as they are published: other names of tensors, heads, and what is wrong with config.json."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.graph.anyres import scaled_down
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import read_weights
from ouzel.engine.core import EngineCore
from ouzel.errors import EngineFailed, ModelLoadError
from tests.backends.conftest import Load
from tests.backends.test_openvino_loading import (
    WEIGHTS,
    add_tensor,
    change_config,
    create,
    rename_tensors,
)
from tests.backends.test_openvino_vision import (
    GOLDEN,
    VisionGolden,
    features_of,
    read_vision_golden,
    relative_error,
)
from tests.engine.requests import run_alone

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


def copied(name: str, directory: Path) -> VisionGolden:
    """Returns a copy of a checkpoint, to be changed."""
    golden = read_vision_golden(name)
    return VisionGolden(Path(shutil.copytree(golden.directory, directory / name)), golden.arrays)


@pytest.mark.parametrize("release", NAMES)
def test_tensors_are_found_by_older_and_newer_names(release: str, tmp_path: Path) -> None:
    golden = copied("llava_next", tmp_path)
    for here, there in NAMES[release].items():
        rename_tensors(golden.directory / WEIGHTS, f'"{here}'.encode(), f'"{there}'.encode())
    add_tensor(golden.directory / WEIGHTS, "vision_tower.vision_model.embeddings.position_ids")

    runner = create(golden.directory)

    found = np.concatenate([features_of(runner, image) for image in golden.images(4)], axis=1)
    assert relative_error(found, golden.arrays["features.4"]) < 1e-5
    assert (
        run_alone(EngineCore(runner), golden.request(1, max_tokens=4))[0].token_ids
        == golden.greedy(1)[:4]
    )


def test_a_tensor_too_many_of_a_tower_is_told_by_name(tmp_path: Path) -> None:
    golden = copied("llava", tmp_path)
    add_tensor(golden.directory / WEIGHTS, "vision_tower.encoder.layers.0.note.weight")
    with pytest.raises(
        ModelLoadError,
        match=r"tensor vision_tower.encoder.layers.0.note.weight is in the checkpoint",
    ):
        create(golden.directory)


# Of each the name, whether there is a head, and what config.json says of it: beside text_config and in it.
HEADS = {
    "tied in text_config only": ("mistral3", False, True),
    "a head, which beside text_config is tied": ("llava_next", True, False),
    "a head, which in text_config is tied": ("llava_next", False, True),
}


@pytest.mark.parametrize("case", HEADS)
def test_whether_the_head_is_the_embedding_is_as_the_tensors_say(case: str, tmp_path: Path) -> None:
    name, beside, inside = HEADS[case]
    golden = copied(name, tmp_path)
    text = json.loads((golden.directory / "config.json").read_text())["text_config"]
    change_config(
        golden.directory,
        tie_word_embeddings=beside,
        text_config=text | {"tie_word_embeddings": inside},
    )

    for _ in ("from the checkpoint", "from the cache"):
        found = run_alone(EngineCore(create(golden.directory)), golden.request(1, max_tokens=4))[
            0
        ].token_ids
        assert found == golden.greedy(1)[:4]


VISION: dict[str, tuple[str, dict[str, Any], str]] = {  # Any: JSON
    "other tower": (
        "llava",
        {"model_type": "dinov2"},
        'model_type "dinov2" is not supported; supported: clip_vision',
    ),
    "heads do not divide": (
        "llava",
        {"num_attention_heads": 3},
        "hidden_size 32 is no multiple of .*heads 3",
    ),
    "patch over tile": (
        "llava",
        {"patch_size": 24},
        "patch_size must be <= image_size 23, found 24",
    ),
    "oblong tile": (
        "llava",
        {"image_size": [23, 24]},
        r"image_size \[23, 24\] is not supported; supported: squares",
    ),
    "sides of a cube": (
        "llava",
        {"image_size": [23] * 3},
        "image_size must be a list of 2 integers",
    ),
    "no side": ("llava", {"image_size": [0, 0]}, "image_size must be a positive integer"),
    "a tile as large as a sea": (
        "llava",
        {"image_size": 2**20},
        "position_embedding.weight has the shape",
    ),
    "grey pictures": ("llava", {"num_channels": 1}, "num_channels 1 is not supported"),
    "layers that are not there": (
        "llava-siglip",
        {"num_hidden_layers": 6},
        "encoder.layers.5.layer_norm1.weight is",
    ),
    "odd quarters of heads": (
        "pixtral",
        {"num_attention_heads": 16},
        "multiple of four times num_attention_heads 16",
    ),
    "other heads": ("pixtral", {"head_dim": 8}, "head_dim 8 is not supported; supported: 16"),
    "other angles": (
        "pixtral",
        {"rope_parameters": {"rope_type": "yarn"}},
        'rope_type "yarn" is not supported',
    ),
    "no angles": (
        "pixtral",
        {"rope_parameters": {"rope_theta": 0.0}},
        "rope_theta 0.0 is not supported",
    ),
    "CLIP in Mistral 3": ("mistral3", {"model_type": "clip_vision_model"}, "supported: pixtral"),
}
WHOLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "layer above the last": (
        "llava",
        {"vision_feature_layer": 7},
        "vision_feature_layer 7 .* layers from -7 to 6",
    ),
    "layer below the first": (
        "llava",
        {"vision_feature_layer": [-1, -8]},
        r"vision_feature_layer \[-1, -8\] is not",
    ),
    "no layer": (
        "llava",
        {"vision_feature_layer": []},
        r"vision_feature_layer \[\] is not supported",
    ),
    "other rows": (
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
    "a number as resolution": (
        "llava_next",
        {"image_grid_pinpoints": [14]},
        "must be a list of integers, found 14",
    ),
    "parts of tiles": (
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
def test_a_config_that_cannot_be_is_told_by_its_key(case: str) -> None:
    name, changes, message = VISION.get(case) or WHOLE[case]
    config = json.loads((GOLDEN / name / "config.json").read_text())
    config |= changes if case in WHOLE else {"vision_config": config["vision_config"] | changes}
    with pytest.raises(ModelLoadError, match=message) as refused:
        measure_checkpoint(GOLDEN / name, HfConfig(config), read_weights("auto"))
    assert "\n" not in str(refused.value)


# Of each the checkpoint, what is other than its image processor makes it, and what the client is told.
IMAGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "another tile": (
        "llava",
        {"shape": (1, 20, 20), "pixels": bytes(1200)},
        "image_size 23 .* made 20x20",
    ),
    "more tokens than rows": ("llava", {"runs": ((0, 26),)}, "25 rows of features for 26 tokens"),
    "tiles of another resolution": (
        "llava_next",
        {"size": (28, 28)},
        "28x28 must have 4 tiles .* processor made 3",
    ),
    "half a row of features": (
        "mistral3",
        {"shape": (1, 8, 12), "pixels": bytes(288)},
        "multiples of 8, found 8x12",
    ),
}


@pytest.mark.parametrize("case", IMAGES)
def test_an_image_that_config_json_does_not_foresee_is_refused(case: str, load: Load) -> None:
    name, changes, message = IMAGES[case]
    golden = read_vision_golden(name)
    image = msgspec.structs.replace(golden.image(0, ((0, golden.num_rows(0)),)), **changes)
    with pytest.raises(EngineFailed, match=message):
        features_of(load(golden.directory), image)


def test_a_very_long_picture_may_have_no_line_left() -> None:
    assert scaled_down(np.ones((1, 300, 4), np.float32), 9).shape == (0, 51, 4)
