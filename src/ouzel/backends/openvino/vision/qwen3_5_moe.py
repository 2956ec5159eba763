"""Qwen3.5-MoE has the encoder of the dense model.

Reference: transformers, models/qwen3_5_moe/modeling_qwen3_5_moe.py.
"""

from ouzel.backends.openvino.vision.qwen3_5 import build, image_shape

__all__ = ["build", "image_shape"]
