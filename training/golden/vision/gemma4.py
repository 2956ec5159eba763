"""Gemma 4: pictures of any size, cut into patches, of which squares become one row, their average."""

from typing import Any

import numpy as np
import torch

from training.golden.cases.gemma4 import CALM, FULL, SLIDING
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

PATCH, POOLING = 4, 3
UNIT = PATCH * POOLING
MAX_PATCHES = 16 * POOLING**2
VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "patch_size": PATCH,
    "pooling_kernel_size": POOLING,
    "position_embedding_size": 256,
}
TEXT: dict[str, Any] = {
    "vocab_size": 128,
    "head_dim": 16,
    "global_head_dim": 32,
    "sliding_window": 16,
    "pad_token_id": 3,
    "final_logit_softcapping": 10.0,
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Cuts and fills up as the reference's image processor does."""
    flat, places = [], []
    for tiles in pictures:
        _, channels, height, width = tiles.shape
        rows, columns = height // PATCH, width // PATCH
        cut = (
            tiles.reshape(channels, rows, PATCH, columns, PATCH)
            .transpose(1, 3, 2, 4, 0)
            .reshape(rows * columns, -1)
        )
        across, down = np.meshgrid(np.arange(columns), np.arange(rows))
        missing = MAX_PATCHES - rows * columns
        flat.append(np.pad(cut, ((0, missing), (0, 0))))
        place = np.stack([across, down], axis=-1).reshape(-1, 2)
        places.append(np.pad(place, ((0, missing), (0, 0)), constant_values=-1))
    return {
        "pixel_values": torch.tensor(np.stack(flat)),
        "image_position_ids": torch.tensor(np.stack(places)),
    }


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    return (shape[1] // UNIT) * (shape[2] // UNIT)


def case(text: dict[str, Any], vision: dict[str, Any], first_seed: int = 0) -> VisionCase:
    return VisionCase(
        {
            "model_type": "gemma4",
            "image_token_id": IMAGE_TOKEN,
            "video_token_id": 6,
            "audio_token_id": 5,
            "tie_word_embeddings": False,
            "audio_config": None,
            "text_config": {**TEXT, **text},
            "vision_config": {**VISION, **vision},
        },
        pictures=(
            (1, 4 * UNIT, 4 * UNIT),
            (1, 2 * UNIT, 5 * UNIT),
            (1, UNIT, 6 * UNIT),
            (1, 3 * UNIT, 3 * UNIT),
        ),
        inputs=inputs,
        num_rows=num_rows,
        types_name="mm_token_type_ids",
        factors=CALM,
        first_seed=first_seed,
    )


CASES: dict[str, VisionCase] = {
    "gemma4": case(
        {
            "num_hidden_layers": 3,
            "layer_types": [SLIDING, SLIDING, FULL],
            "hidden_size_per_layer_input": 0,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "use_bidirectional_attention": "vision",
        },
        {"num_hidden_layers": 5, "standardize": True},
        first_seed=2,
    ),
    "gemma4-layers": case(
        {
            "num_hidden_layers": 4,
            "layer_types": [SLIDING, FULL, SLIDING, FULL],
            "num_kv_shared_layers": 2,
            "num_key_value_heads": 1,
            "hidden_size_per_layer_input": 16,
            "vocab_size_per_layer_input": 128,
            "intermediate_size": 32,
        },
        {
            "num_hidden_layers": 2,
            "use_clipped_linears": True,
            "rope_parameters": {"rope_type": "axial", "rope_theta": 50.0},
        },
    ),
}
