"""Pictures of any size, with a break behind each row of tokens."""

from typing import Any

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

PATCH = 4
VISION = {
    "model_type": "pixtral",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 5,
    "num_attention_heads": 2,
    "image_size": 64,
    "patch_size": PATCH,
    "hidden_act": "silu",
    "rope_parameters": rope("axial"),
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Pads all to the largest, as the reference's image processor does."""
    height, width = np.max(sizes, axis=0)
    padded = np.zeros((len(pictures), 3, height, width), np.float32)
    for place, (picture,) in zip(padded, pictures, strict=True):
        place[:, : picture.shape[1], : picture.shape[2]] = picture
    return {"pixel_values": torch.tensor(padded), "image_sizes": torch.tensor(sizes)}


def case(model_type: str, merge: int, text: dict[str, Any], **settings: Any) -> VisionCase:
    unit = PATCH * merge

    def num_rows(shape: Shape, size: tuple[int, int]) -> int:
        return (shape[1] // unit) * (shape[2] // unit)

    return VisionCase(
        {
            "model_type": model_type,
            "image_token_index": IMAGE_TOKEN,
            "text_config": {"vocab_size": 192, "head_dim": 16, **text},
            "vision_config": VISION,
            **settings,
        },
        pictures=(
            (1, 3 * unit, 5 * unit),
            (1, 4 * unit, unit),
            (1, unit, 7 * unit),
            (1, 2 * unit, 2 * unit),
        ),
        inputs=inputs,
        num_rows=num_rows,
        spaced=5,
    )


CASES: dict[str, VisionCase] = {
    "pixtral": case(
        "llava",
        1,
        {"model_type": "mistral", "sliding_window": None},
        vision_feature_layer=[-1, 2],
        vision_feature_select_strategy="full",
    ),
    "mistral3": case(
        "mistral3", 2, {"model_type": "ministral3", "rms_norm_eps": 1e-5}
    ),  # whose head is the embedding
}
