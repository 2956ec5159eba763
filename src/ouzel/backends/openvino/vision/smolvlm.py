"""SmolVLM has the encoder of Idefics 3.

Reference: transformers, models/smolvlm/modeling_smolvlm.py; SmolVLM (Marafioti 2025).
"""

from ouzel.backends.openvino.vision.idefics3 import build, image_shape

__all__ = ["build", "image_shape"]
