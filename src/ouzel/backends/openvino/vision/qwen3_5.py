"""Qwen3.5, 3.6 and 3.8 have Qwen3-VL's encoder without DeepStack.

Reference: transformers, models/qwen3_5/modeling_qwen3_5.py.
"""

from ouzel.backends.openvino.graph.images import ImageShape
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.vision import qwen3_vl
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig


def image_shape(config: HfConfig) -> ImageShape:
    return ImageShape()


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    vision = config.required_section("vision_config")
    return qwen3_vl.build(
        config.with_values(vision_config=vision.values | {"deepstack_visual_indexes": []}), b
    )
