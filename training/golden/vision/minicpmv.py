"""Pieces of pictures, of which each tile has as many rows of features as there are queries."""

from typing import Any

import torch

from training.golden.cases import BASE
from training.golden.minicpmv import MiniCPMV
from training.golden.vision import IMAGE_TOKEN, Pixels, VisionCase

PATCH, NUM_QUERIES = 4, 3
VISION = {
    "model_type": "siglip",
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "patch_size": PATCH,
    "image_size": 24,
}


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, Any]:
    tiles = [torch.tensor(tile) for picture in pictures for tile in picture]
    return {"tiles": tiles, "image_token": IMAGE_TOKEN}


def case(version: float, size: int, **settings: object) -> VisionCase:
    own = {
        **BASE,
        "model_type": "minicpmv",
        "version": version,
        "vocab_size": 160,
        "hidden_size": size,
        "intermediate_size": 48,
        "head_dim": 16,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "query_num": NUM_QUERIES,
        "drop_vision_last_layer": False,
        "slice_mode": True,
        "vision_config": VISION,
        **settings,
    }
    return VisionCase(
        {key: each for key, each in own.items() if each is not None},
        pictures=((1, 24, 36), (4, 20, 16), (1, 8, 60), (2, 12, 12)),
        inputs=inputs,
        num_rows=lambda shape, size: shape[0] * NUM_QUERIES,
        spaced=3,
        make_model=MiniCPMV,
    )


CASES: dict[str, VisionCase] = {
    # queries have two heads
    "minicpmv": case(4.5, 256, num_attention_heads=2, num_key_value_heads=1, intermediate_size=32),
    "minicpmv-llama": case(4.0, 128, rms_norm_eps=1e-5, tie_word_embeddings=False),
    "minicpmv-qwen2": case(2.6, 128, head_dim=None, num_hidden_layers=1),
}
