"""Tiles whose patches have a row before them that stands for none, and whose layers scale what they add."""

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

TEXT = {"model_type": "qwen2", "vocab_size": 192, "rope_parameters": rope()}
SIDE, PATCH = 16, 4


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.tensor(np.concatenate(pictures))}


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    return shape[0] * (SIDE // PATCH // 2) ** 2


def case(vision: dict[str, object], **settings: object) -> VisionCase:
    return VisionCase(
        {
            "model_type": "internvl",
            "image_token_id": IMAGE_TOKEN,
            "text_config": TEXT,
            "tie_word_embeddings": False,
            "vision_config": {
                "hidden_size": 32,
                "num_attention_heads": 2,
                "intermediate_size": 56,
                "image_size": SIDE,
                "patch_size": PATCH,
                **vision,
            },
            **settings,
        },
        pictures=((3, SIDE, SIDE), (2, SIDE, SIDE), (6, SIDE, SIDE), (1, SIDE, SIDE)),
        inputs=inputs,
        num_rows=num_rows,
    )


CASES: dict[str, VisionCase] = {
    "internvl": case({"num_hidden_layers": 5, "attention_bias": True}),
    "internvl-norms": case(
        {
            "num_hidden_layers": 2,
            "norm_type": "rms_norm",
            "use_qk_norm": True,
            "use_mean_pooling": False,
            "use_absolute_position_embeddings": False,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-5,
        },
        projector_hidden_act="silu",
    ),
}
