"""The language model of Qwen2-VL is the same as in Qwen2.5-VL.

Reference: transformers, models/qwen2_vl/modeling_qwen2_vl.py and configuration_qwen2_vl.py.
"""

from ouzel.backends.openvino.models.qwen2_5_vl_text import build

__all__ = ["build"]
