"""LLaVA-OneVision is llava_next with SigLIP's last layer and a limit for the features of an image.

The limit is the features of a number of tiles. Reference: transformers,
models/llava_onevision/modeling_llava_onevision.py; LLaVA-OneVision (Li 2024, arXiv 2408.03326).
"""

import re

from ouzel.backends.openvino.graph.anyres import AnyRes
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import tile_features
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import tile_passes
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

SIDES = range(384, 2304 + 1, 384)
RESOLUTIONS = [(height, width) for height in SIDES for width in SIDES]


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    config = config.with_defaults(vision_feature_layer=-1, vision_feature_select_strategy="full")
    features, shape = tile_features(b, config, "siglip_vision_model")
    any_res = AnyRes.read(config, shape.vit, shape.num_rows, RESOLUTIONS, max_tiles(config))
    newline = b.array("image_newline", config.text_model().size("hidden_size", 4096))
    return b.vision_model(features, tile_passes(shape.vit), any_res.join(newline))


def max_tiles(config: HfConfig) -> int:
    """Returns N of anyres_max_N."""
    found = re.fullmatch(
        r"anyres_max_([1-9][0-9]{0,3})", config.text("vision_aspect_ratio", "anyres_max_9")
    )
    if found is None:
        raise config.refuse("vision_aspect_ratio", "anyres_max_1 to anyres_max_9999")
    return int(found[1])
