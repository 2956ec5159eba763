"""Qwen3-VL's mixtures of experts have the encoder of the dense model.

Reference: transformers, models/qwen3_vl_moe/modeling_qwen3_vl_moe.py.
"""

from ouzel.backends.openvino.vision.qwen3_vl import build, image_shape

__all__ = ["build", "image_shape"]
