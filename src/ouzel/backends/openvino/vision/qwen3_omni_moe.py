"""Qwen3-Omni has the encoder of Qwen3-VL, under other names.

Reference: transformers, models/qwen3_omni_moe/modeling_qwen3_omni_moe.py.
"""

from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.vision.qwen3_vl import build_encoder, image_shape
from ouzel.backends.openvino.vision_model import VisionModel
from ouzel.checkpoint.hf_config import HfConfig

__all__ = ["build", "image_shape"]

MERGER = ("ln_q", "mlp.0", "mlp.2")


def build(config: HfConfig, b: VisionBuilder) -> VisionModel:
    return build_encoder(config, b, MERGER, "visual.merger_list.")
