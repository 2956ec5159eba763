"""Square tiles of one size with text between them, whose patches become channels of fewer rows."""

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

TEXT = {"model_type": "llama", "vocab_size": 192, "head_dim": 16, "rope_parameters": rope()}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.tensor(np.concatenate(pictures))[None]}


def case(
    model_type: str, side: int, patch: int, factor: int, vision: dict[str, object]
) -> VisionCase:
    tile_rows = (side // patch // factor) ** 2

    def num_rows(shape: Shape, size: tuple[int, int]) -> int:
        return shape[0] * tile_rows

    return VisionCase(
        {
            "model_type": model_type,
            "image_token_id": IMAGE_TOKEN,
            "scale_factor": factor,
            "text_config": TEXT,
            "vision_config": {
                "hidden_size": 32,
                "num_attention_heads": 2,
                "image_size": side,
                "patch_size": patch,
                **vision,
            },
        },
        pictures=((3, side, side), (1, side, side), (6, side, side), (2, side, side)),
        inputs=inputs,
        num_rows=num_rows,
        spaced=tile_rows,
    )


CASES: dict[str, VisionCase] = {
    "smolvlm": case("smolvlm", 16, 4, 2, {"num_hidden_layers": 5, "intermediate_size": 56}),
    # Pixels of a tile that fill no patch are left out.
    "idefics3": case(
        "idefics3",
        26,
        4,
        3,
        {
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-5,
        },
    ),
}
