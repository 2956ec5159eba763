"""LLaVA 1.5 takes one tile's features from a late layer of CLIP or SigLIP, or uses Pixtral's
encoder.

Reference: transformers, models/llava/modeling_llava.py; LLaVA 1.5 (Liu 2023, arXiv 2310.03744).
"""

from ouzel.backends.openvino.graph.feature_layers import feature_layers
from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import projected, skips_first, tile_features, with_defaults
from ouzel.backends.openvino.graph.pixtral import PixtralShape, pixtral_passes, pixtral_rows
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import tile_passes
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    config = with_defaults(config)
    vision = config.required_section("vision_config")
    if vision.text("model_type", "") == "pixtral":
        return pixtral(config, vision, b)
    features, shape = tile_features(b, config)
    return b.vision_model(features, tile_passes(shape.vit))


def pixtral(config: HfConfig, vision: HfConfig, b: VisionBuilder) -> VisionModel:
    # the first row would be a patch: Pixtral has no row that stands for the whole tile
    if skips_first(config):
        raise config.refuse("vision_feature_select_strategy", "full, as the tower is Pixtral's")
    shape = PixtralShape.read(vision, merge=1)
    layers = feature_layers(config, shape.num_layers)
    features = projected(b, pixtral_rows(b, shape, layers), shape.hidden_size * len(layers), config)
    return b.vision_model(features, pixtral_passes(shape))
