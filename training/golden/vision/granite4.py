"""Tiles as in LLaVA-NeXT, and projectors whose features enter before several layers of the language model."""

from types import SimpleNamespace
from typing import Any

import torch
from transformers.models.granite4_vision.modeling_granite4_vision import Granite4VisionModel

from training.golden.vision import IMAGE_TOKEN, Shape, VisionCase
from training.golden.vision.anyres import inputs

TILE = 17  # the last pixels are in no patch
RESOLUTIONS = [[17, 17], [17, 34], [34, 17]]
RATE = "2/4"
NUM_ROWS = 16  # of a tile, for 64 patches
VISION = {
    "hidden_size": 64,  # the least for a Q-Former
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": TILE,
    "patch_size": 2,
}
TEXT = {
    "model_type": "granite4_vision_text",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 128,
    "embedding_multiplier": 2.0,
    "attention_multiplier": 0.3,
    "residual_multiplier": 0.8,
    "logits_scaling": 1.5,
}


def num_rows(shape: Shape, size: tuple[int, int]) -> int:
    model = SimpleNamespace(
        config=SimpleNamespace(
            image_grid_pinpoints=RESOLUTIONS, vision_config=SimpleNamespace(**VISION)
        ),
        layerwise_projectors=[],
        downsample_rate=RATE,
    )
    features: list[Any] = [torch.zeros(shape[0], NUM_ROWS, 1)]
    return len(
        Granite4VisionModel.pack_image_features(
            model, features, torch.tensor([size]), "full", torch.zeros(1)
        )[0]
    )


def case(settings: dict[str, Any], unused: tuple[str, ...] = ()) -> VisionCase:
    pictures = {(14, 40): 3, (31, 17): 3, (12, 12): 2, (30, 13): 3}
    return VisionCase(
        {
            "model_type": "granite4_vision",
            "image_token_index": IMAGE_TOKEN,
            "image_grid_pinpoints": RESOLUTIONS,
            "downsample_rate": RATE,
            **settings,
        },
        pictures=tuple((num_tiles, TILE, TILE) for num_tiles in pictures.values()),
        sizes=tuple(pictures),
        inputs=inputs,
        num_rows=num_rows,
        unused=unused,
    )


CASES: dict[str, VisionCase] = {
    "granite4_vision": case(
        {
            "text_config": {**TEXT, "num_hidden_layers": 6},
            "vision_config": {
                **VISION,
                "model_type": "siglip_vision_model",
                "vision_use_head": False,
            },
            "vision_feature_select_strategy": "full",
            "deepstack_layer_map": [[-3, 3], [-1, 0]],
            "spatial_vision_layer": -2,
            "spatial_target_layers": [5, 1, 4, 2],
            "qformer_config": {
                "model_type": "blip_2_qformer",
                "num_hidden_layers": 1,
                "intermediate_size": 40,
                "cross_attention_frequency": 1,
            },
        }
    ),
    # CLIP, two layers of each Q-Former, fewer corners, and nothing before the first layer.
    "granite4_vision-clip": case(
        {
            "text_config": {**TEXT, "num_hidden_layers": 4},
            "vision_config": {**VISION, "num_hidden_layers": 2, "model_type": "clip_vision_model"},
            "deepstack_layer_map": [[1, 2]],
            "spatial_target_layers": [3, 1],
            "qformer_config": {
                "model_type": "blip_2_qformer",
                "num_hidden_layers": 2,
                "intermediate_size": 24,
                "cross_attention_frequency": 2,
                "hidden_act": "relu",
                "layer_norm_eps": 1e-3,
                "use_qformer_text_input": True,
            },
        }
    ),
    # Two heads of each Q-Former, and no corners.
    "granite4_vision-heads": case(
        {
            "text_config": {
                **TEXT,
                "num_hidden_layers": 1,
                "attention_bias": True,
                "mlp_bias": True,
            },
            "vision_config": {
                **VISION,
                "hidden_size": 128,
                "num_hidden_layers": 1,
                "model_type": "siglip_vision_model",
                "vision_use_head": False,
            },
            "vision_feature_select_strategy": "full",
            "deepstack_layer_map": [[-1, 0]],
            "spatial_target_layers": [],
            "qformer_config": {
                "model_type": "blip_2_qformer",
                "num_hidden_layers": 1,
                "intermediate_size": 24,
                "cross_attention_frequency": 1,
            },
        },
        unused=("model.spatial_projectors.",),
    ),
}
