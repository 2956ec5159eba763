"""The whole picture, and tiles of it in the best of some resolutions."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from transformers.models.llava_next.modeling_llava_next import LlavaNextModel
from transformers.models.llava_onevision.modeling_llava_onevision import LlavaOnevisionModel

from training.golden.vision import IMAGE_TOKEN, Pixels, Shape, VisionCase

TILE = 14
VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 5,
    "num_attention_heads": 2,
    "image_size": TILE,
    "patch_size": 4,
}
NUM_ROWS = 9  # of a tile: the last pixels are in no patch
RESOLUTIONS = {
    "llava_next": [[14, 28], [28, 14], [28, 28], [42, 14], [14, 42]],
    "llava_onevision": [[TILE * down, TILE * across] for down in (1, 2, 3) for across in (1, 2, 3)],
}
ASPECT_RATIO = "anyres_max_3"

Rows = Callable[[Any, list[torch.Tensor], torch.Tensor], torch.Tensor]


def inputs(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    tiles = torch.cat([torch.tensor(each) for each in pictures])
    return {"pixel_values": tiles, "image_sizes": torch.tensor(sizes)}


def some_whole(pictures: list[Pixels], sizes: list[tuple[int, int]]) -> dict[str, torch.Tensor]:
    """The third and fourth are of one tile each, as the reference has all pictures of a prompt with several."""
    return inputs(pictures, sizes) | {"batch_num_images": torch.tensor([1, 1, 2])}


def rows_of_next(model: Any, features: list[torch.Tensor], sizes: torch.Tensor) -> torch.Tensor:
    return LlavaNextModel.pack_image_features(model, features, sizes, "default", torch.zeros(1))[0][
        0
    ]


def rows_of_onevision(
    model: Any, features: list[torch.Tensor], sizes: torch.Tensor
) -> torch.Tensor:
    return LlavaOnevisionModel.pack_image_features(
        model, features, sizes, torch.zeros(1), ASPECT_RATIO
    )[0][0]


def case(
    settings: dict[str, Any],
    rows: Rows,
    pictures: dict[tuple[int, int], int],
    some: Callable[..., Any],
) -> VisionCase:
    """`pictures` are sizes, with the number of tiles of each."""
    resolutions = RESOLUTIONS[settings["model_type"]]
    model = SimpleNamespace(
        config=SimpleNamespace(
            image_grid_pinpoints=resolutions, vision_config=SimpleNamespace(**VISION)
        )
    )

    def num_rows(shape: Shape, size: tuple[int, int]) -> int:
        return len(rows(model, [torch.zeros(shape[0], NUM_ROWS, 1)], torch.tensor([size])))

    return VisionCase(
        {"image_token_index": IMAGE_TOKEN, "image_grid_pinpoints": resolutions, **settings},
        pictures=tuple((num_tiles, TILE, TILE) for num_tiles in pictures.values()),
        sizes=tuple(pictures),
        inputs=some,
        num_rows=num_rows,
    )


CASES: dict[str, VisionCase] = {
    "llava_next": case(
        {
            "model_type": "llava_next",
            "text_config": {"model_type": "mistral", "vocab_size": 192, "head_dim": 16},
            "vision_config": {**VISION, "model_type": "clip_vision_model"},
        },
        rows_of_next,
        {(25, 60): 4, (61, 26): 4, (28, 28): 5, (10, 12): 3},
        inputs,
    ),
    # Granite Vision 3: several layers of SigLIP, and factors of the language model.
    "llava_next-granite": case(
        {
            "model_type": "llava_next",
            "text_config": {
                "model_type": "granite",
                "vocab_size": 192,
                "embedding_multiplier": 2.0,
                "attention_multiplier": 0.2,
                "residual_multiplier": 0.8,
                # The reference's llava_next forgets this factor, which its granite has.
                "logits_scaling": 1.0,
            },
            "vision_config": {
                **VISION,
                "model_type": "siglip_vision_model",
                "vision_use_head": False,
            },
            "vision_feature_layer": [-5, -3, -2, -1],
            "vision_feature_select_strategy": "full",
        },
        rows_of_next,
        {(25, 60): 4, (61, 26): 4, (28, 28): 5, (10, 12): 3},
        inputs,
    ),
    "llava_onevision": case(
        {
            "model_type": "llava_onevision",
            "text_config": {"model_type": "qwen2", "vocab_size": 192},
            "vision_config": {
                **VISION,
                "model_type": "siglip_vision_model",
                "vision_use_head": False,
            },
            "vision_aspect_ratio": ASPECT_RATIO,
        },
        rows_of_onevision,
        {(30, 62): 7, (50, 19): 7, (30, 20): 1, (9, 9): 1},
        some_whole,
    ),
}
