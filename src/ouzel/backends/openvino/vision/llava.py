"""LLaVA 1.5 takes features of CLIP, or of SigLIP, from a layer before the last; one tile is the whole picture.

Reference: transformers, models/llava/modeling_llava.py; LLaVA 1.5 (Liu 2023).
"""

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.llava import tile_features
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.vit import tile_passes
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.vision_model import VisionModel


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    features, shape = tile_features(b, config)
    return b.vision_model(features, tile_passes(shape.vit))
