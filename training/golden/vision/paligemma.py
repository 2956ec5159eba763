"""PaliGemma, whose language models Gemma and Gemma 2 read the whole prompt in both directions."""

from typing import Any

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

SIDE, PATCH = 18, 4  # the last two columns and rows of pixels belong to no patch
NUM_ROWS = (SIDE // PATCH) ** 2
SLIDING, FULL = "sliding_attention", "full_attention"
TEXT: dict[str, Any] = {
    "vocab_size": 128,
    "head_dim": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "tie_word_embeddings": True,
    "rope_parameters": rope(),
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.tensor(np.concatenate(pictures))}


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    return NUM_ROWS


def case(text: dict[str, Any], first_seed: int = 0) -> VisionCase:
    return VisionCase(
        {
            "model_type": "paligemma",
            "image_token_index": IMAGE_TOKEN,
            "projection_dim": 64,
            "hidden_size": 64,
            "tie_word_embeddings": True,
            "text_config": {**TEXT, **text},
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
        reads_prompts_both_ways=True,
        factors={"embed_tokens": 0.3},  # else a token's embedding predicts the token again
        first_seed=first_seed,
    )


CASES: dict[str, VisionCase] = {
    "paligemma": case({"model_type": "gemma", "num_hidden_layers": 2}),
    # a window of fewer tokens than most prompts have
    "paligemma2": case(
        {
            "model_type": "gemma2",
            "num_hidden_layers": 3,
            "layer_types": [SLIDING, FULL, SLIDING],
            "query_pre_attn_scalar": 16,
            "attn_logit_softcapping": 1.5,
            "final_logit_softcapping": 20.0,
            "sliding_window": 24,
        }
    ),
}
