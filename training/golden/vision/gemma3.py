"""Gemma 3, whose patches become fewer rows by averages, and whose language model sees each picture as a whole."""

from typing import Any

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

FULL, SLIDING = "full_attention", "sliding_attention"
SIDE, PATCH, NUM_ROWS = 32, 4, 16
TEXT: dict[str, Any] = {
    "vocab_size": 128,
    "head_dim": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "query_pre_attn_scalar": 32,
    "sliding_window": 16,
    "layer_types": [SLIDING, FULL, SLIDING],
    "rope_parameters": {FULL: rope("linear", 1e6, factor=8.0), SLIDING: rope()},
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.tensor(np.concatenate(pictures))}


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    return NUM_ROWS


CASES: dict[str, VisionCase] = {
    "gemma3": VisionCase(
        {
            "model_type": "gemma3",
            "image_token_index": IMAGE_TOKEN,
            "mm_tokens_per_image": NUM_ROWS,
            "tie_word_embeddings": False,
            "text_config": TEXT,
            "vision_config": {
                "model_type": "siglip_vision_model",
                "hidden_size": 32,
                "num_attention_heads": 2,
                "num_hidden_layers": 2,
                "intermediate_size": 56,
                "image_size": SIDE,
                "patch_size": PATCH,
                "vision_use_head": False,
            },
        },
        pictures=((1, SIDE, SIDE),) * 4,
        inputs=inputs,
        num_rows=num_rows,
        types_name="token_type_ids",
    ),
}
