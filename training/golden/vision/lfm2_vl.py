"""Pieces of pictures: tiles of one size, which have their own rows and columns of patches."""

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

PATCH, FACTOR = 4, 2
UNIT = PATCH * FACTOR
TEXT = {
    "model_type": "lfm2",
    "vocab_size": 192,
    "num_hidden_layers": 3,
    "layer_types": ["conv", "full_attention", "conv"],
    "intermediate_size": 80,
    "block_auto_adjust_ff_dim": False,
    "rope_parameters": rope(theta=1_000_000.0),
    "norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
VISION = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "patch_size": PATCH,
    "num_patches": 25,
    "vision_use_head": False,
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Cuts and fills up as the reference's image processor does."""
    tiles = [tile for picture in pictures for tile in picture]
    shapes = [(tile.shape[1] // PATCH, tile.shape[2] // PATCH) for tile in tiles]
    most = max(rows * columns for rows, columns in shapes)
    patches = np.zeros((len(tiles), most, 3 * PATCH**2), np.float32)
    mask = np.zeros((len(tiles), most), np.int64)
    for number, (tile, (rows, columns)) in enumerate(zip(tiles, shapes, strict=True)):
        cut = tile.reshape(3, rows, PATCH, columns, PATCH).transpose(1, 3, 2, 4, 0)
        patches[number, : rows * columns] = cut.reshape(rows * columns, -1)
        mask[number, : rows * columns] = 1
    return {
        "pixel_values": torch.tensor(patches),
        "spatial_shapes": torch.tensor(shapes),
        "pixel_attention_mask": torch.tensor(mask),
    }


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    return shape[0] * (shape[1] // UNIT) * (shape[2] // UNIT)


def case(vision: dict[str, object], **settings: object) -> VisionCase:
    return VisionCase(
        {
            "model_type": "lfm2_vl",
            "image_token_id": IMAGE_TOKEN,
            "downsample_factor": FACTOR,
            "projector_hidden_size": 48,
            "tie_word_embeddings": True,
            "text_config": TEXT,
            "vision_config": {**VISION, **vision},
            **settings,
        },
        pictures=(
            (1, 3 * UNIT, 5 * UNIT),
            (3, 2 * UNIT, 2 * UNIT),
            (1, UNIT, 9 * UNIT),
            (1, UNIT, UNIT),
        ),
        inputs=inputs,
        num_rows=num_rows,
        spaced=4,
    )


CASES: dict[str, VisionCase] = {
    "lfm2_vl": case({}),
    # LFM2.5-VL has no norm before its projector.
    "lfm2_vl-plain": case(
        {"num_hidden_layers": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-5},
        projector_use_layernorm=False,
        projector_bias=False,
        projector_hidden_act="silu",
    ),
}
