"""Granite 4 Vision's language model is granite; features of images enter before chosen layers.

Reference: transformers, models/granite4_vision/modeling_granite4_vision.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import granite
from ouzel.checkpoint.hf_config import HfConfig


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return granite.build(config, b)
