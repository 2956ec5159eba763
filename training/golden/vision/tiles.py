"""Tiles of one size, of which some families have several for a picture."""

from typing import Any

import torch

from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

TEXT = {"model_type": "llama", "vocab_size": 192}
CLIP = {
    "model_type": "clip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 6,
    "num_attention_heads": 2,
    "image_size": 23,  # the last pixels of a tile are in no patch
    "patch_size": 4,
    "projection_dim": 8,
}
SIGLIP = {**CLIP, "model_type": "siglip_vision_model"}


def one_tile_inputs(
    pictures: list[Pixels], sizes: list[tuple[int, int]]
) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.cat([torch.tensor(each) for each in pictures])}


def one_tile(
    num_rows: int, vision: dict[str, Any], text: dict[str, Any], **settings: Any
) -> VisionCase:
    def rows_of(shape: Shape, size: tuple[int, int]) -> int:
        return num_rows

    side = vision["image_size"]
    return VisionCase(
        {
            "model_type": "llava",
            "image_token_index": IMAGE_TOKEN,
            "text_config": {**TEXT, **text},
            "vision_config": vision,
            **settings,
        },
        pictures=((1, side, side),) * 4,
        inputs=one_tile_inputs,
        num_rows=rows_of,
    )


CASES: dict[str, VisionCase] = {
    "llava": one_tile(25, CLIP, {}),
    "llava-siglip": one_tile(
        25,
        {**SIGLIP, "num_hidden_layers": 5, "vision_use_head": True},
        {"model_type": "qwen2"},
        vision_feature_layer=[-1, 1, 3, 0],
        vision_feature_select_strategy="full",
        multimodal_projector_bias=False,
    ),
}
