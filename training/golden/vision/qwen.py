"""Pictures of any size, cut into patches."""

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from training.golden.cases import rope
from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

TEXT = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 192}
TOKENS = {
    "image_token_id": IMAGE_TOKEN,
    "video_token_id": 6,
    "vision_start_token_id": 5,
    "vision_end_token_id": 4,
}
MERGE = 2


def inputs(
    patch: int, pictures: list[Pixels], sizes: list[tuple[int, int]]
) -> dict[str, torch.Tensor]:
    """Cuts as the reference's image processor does."""
    flat, grids = [], []
    for tiles in pictures:
        frames = np.concatenate([tiles, np.repeat(tiles[-1:], len(tiles) % 2, axis=0)])
        times, (_, height, width) = len(frames) // 2, frames.shape[1:]
        rows, columns = height // patch, width // patch
        cut = frames.reshape(
            times, 2, 3, rows // MERGE, MERGE, patch, columns // MERGE, MERGE, patch
        )
        flat.append(cut.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(times * rows * columns, -1))
        grids.append([times, rows, columns])
    return {
        "pixel_values": torch.tensor(np.concatenate(flat)),
        "image_grid_thw": torch.tensor(grids),
    }


def paddle_inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """Cuts patches row by row, without merging them and without times."""
    flat, grids = [], []
    for (picture,) in pictures:
        rows, columns = (side // 4 for side in picture.shape[1:])
        cut = picture.reshape(3, rows, 4, columns, 4).transpose(1, 3, 0, 2, 4)
        flat.append(cut.reshape(rows * columns, 3, 4, 4))
        grids.append([1, rows, columns])
    return {
        "pixel_values": torch.tensor(np.concatenate(flat)),
        "image_grid_thw": torch.tensor(grids),
    }


def num_rows(patch: int, shape: Shape, size: tuple[int, int]) -> int:
    return (shape[1] // patch // MERGE) * (shape[2] // patch // MERGE)


def grid(patch: int, shape: Shape) -> tuple[int, int, int]:
    return 1, shape[1] // patch // MERGE, shape[2] // patch // MERGE


def case(
    model_type: str, patch: int, text: dict[str, object], vision: dict[str, object]
) -> VisionCase:
    unit = patch * MERGE
    return VisionCase(
        {
            "model_type": model_type,
            **TOKENS,
            "text_config": {**TEXT, **text},
            "vision_config": {
                "spatial_merge_size": MERGE,
                "temporal_patch_size": 2,
                "patch_size": patch,
                **vision,
            },
        },
        pictures=(
            (1, 3 * unit, 5 * unit),
            (1, 4 * unit, unit),
            (1, unit, 7 * unit),
            (1, 2 * unit, 2 * unit),
        ),
        inputs=partial(inputs, patch),
        num_rows=partial(num_rows, patch),
        grid=partial(grid, patch),
        types_name="mm_token_type_ids",
    )


CASES: dict[str, VisionCase] = {
    "qwen2_vl": case(
        "qwen2_vl",
        4,
        {"rope_parameters": rope(mrope_section=[2, 3, 3])},
        {"depth": 5, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2},
    ),
    "qwen2_5_vl": case(
        "qwen2_5_vl",
        4,
        {"rope_parameters": rope(mrope_section=[2, 3, 3])},
        {
            "depth": 3,
            "hidden_size": 32,
            "out_hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 56,
            "window_size": 16,
            "fullatt_block_indexes": [1],
        },
    ),
    "qwen3_vl": case(
        "qwen3_vl",
        4,
        {
            "head_dim": 16,
            "num_hidden_layers": 3,
            "rope_parameters": rope(mrope_section=[3, 3, 2], mrope_interleaved=True),
        },
        {
            "depth": 6,
            "hidden_size": 32,
            "out_hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 56,
            "num_position_embeddings": 36,
            "deepstack_visual_indexes": [1, 4],
        },
    ),
    "qwen3_vl_moe": case(
        "qwen3_vl_moe",
        4,
        {
            "head_dim": 16,
            "num_hidden_layers": 3,
            "vocab_size": 128,
            "intermediate_size": 48,
            "moe_intermediate_size": 24,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "mlp_only_layers": [1],
            "rope_parameters": rope(mrope_section=[3, 3, 2], mrope_interleaved=True),
        },
        {
            "depth": 4,
            "hidden_size": 32,
            "out_hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 56,
            "num_position_embeddings": 36,
            "deepstack_visual_indexes": [0, 2],
        },
    ),
    "glm_ocr": case(
        "glm_ocr",
        4,
        {
            "head_dim": 24,
            "vocab_size": 160,
            "intermediate_size": 96,
            "rms_norm_eps": 1e-5,
            "num_nextn_predict_layers": 1,
            "rope_parameters": rope(mrope_section=[3, 4, 5], partial_rotary_factor=1.0),
        },
        {
            "depth": 3,
            "hidden_size": 32,
            "out_hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 56,
        },
    ),
    "paddleocr_vl": replace(
        case(
            "paddleocr_vl",
            4,
            {
                "head_dim": 20,
                "intermediate_size": 80,
                "use_bias": False,
                "rms_norm_eps": 1e-5,
                "tie_word_embeddings": False,
                "rope_parameters": rope(theta=500_000.0, mrope_section=[3, 3, 4]),
            },
            {
                "hidden_size": 32,
                "num_hidden_layers": 3,
                "num_attention_heads": 2,
                "intermediate_size": 56,
                "image_size": 20,
            },
        ),
        inputs=paddle_inputs,
    ),
    "qwen3_5": case(
        "qwen3_5",
        4,
        {
            "head_dim": 32,
            "num_hidden_layers": 4,
            "full_attention_interval": 2,
            "layer_types": ["linear_attention", "full_attention"] * 2,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 8,
            "rope_parameters": rope(
                mrope_section=[2, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.25
            ),
        },
        {
            "depth": 2,
            "hidden_size": 32,
            "out_hidden_size": 64,
            "num_heads": 2,
            "intermediate_size": 56,
            "num_position_embeddings": 36,
        },
    ),
}
