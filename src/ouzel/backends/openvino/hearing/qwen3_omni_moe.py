"""Qwen3-Omni has the encoder AuT of Qwen3-ASR, and does not fill up a sound of less than a second.

Reference: transformers, models/qwen3_omni_moe/modeling_qwen3_omni_moe.py.
"""

from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.hearing.qwen3_asr import build_encoder
from ouzel.backends.openvino.vision_model import HearingModel
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: VisionBuilder) -> HearingModel:
    return build_encoder(config, b, fills_short_sounds=False)
