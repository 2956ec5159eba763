"""Pieces of pictures: a whole picture, and slices of one size."""

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

PATCH = 4
TEXT = {
    "model_type": "qwen3_5_text",
    "vocab_size": 192,
    "head_dim": 32,
    "num_hidden_layers": 3,
    "full_attention_interval": 2,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "intermediate_size": 80,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
    "rope_parameters": rope(
        mrope_section=[2, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.25
    ),
    "tie_word_embeddings": True,
}
VISION = {
    "model_type": "minicpmv4_6_vision",
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "patch_size": PATCH,
    "image_size": 24,
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Packs all patches of all tiles into one row, as the reference's image processor does."""
    rows, shapes = [], []
    for tile in (tile for picture in pictures for tile in picture):
        height, width = (length // PATCH for length in tile.shape[1:])
        cut = tile.reshape(3, height, PATCH, width, PATCH).transpose(0, 2, 1, 3, 4)
        rows.append(cut.reshape(3, PATCH, -1))
        shapes.append((height, width))
    return {
        "pixel_values": torch.tensor(np.concatenate(rows, axis=-1)[None]),
        "target_sizes": torch.tensor(shapes, dtype=torch.int32),
    }


def case(unit: int, vision: dict[str, object], **settings: object) -> VisionCase:
    """`unit` is the side of a token's square in patches."""
    side = PATCH * unit

    def num_rows(shape: Shape, size: tuple[int, int]) -> int:
        return shape[0] * (shape[1] // side) * (shape[2] // side)

    return VisionCase(
        {
            "model_type": "minicpmv4_6",
            "image_token_id": IMAGE_TOKEN,
            "tie_word_embeddings": True,
            "insert_layer_id": 1,
            "text_config": TEXT,
            "vision_config": {**VISION, **vision},
            **settings,
        },
        pictures=(
            (1, 3 * side, 5 * side),
            (3, 2 * side, side),
            (1, side, 7 * side),
            (1, side, side),
        ),
        inputs=inputs,
        num_rows=num_rows,
        spaced=4,
    )


CASES: dict[str, VisionCase] = {
    "minicpmv4_6": case(4, {}),
    # more rows, without the merger inside of the encoder
    "minicpmv4_6-4x": case(
        2,
        {"num_hidden_layers": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-5},
        downsample_mode="4x",
    ),
}
