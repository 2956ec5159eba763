"""Gemma 4 12B is gemma4_text without embeddings for each layer and without experts.

It is the language model of checkpoints that have one encoder for images and sound. Reference:
transformers, models/gemma4_unified/modeling_gemma4_unified.py and configuration_gemma4_unified.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import gemma4_text
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "hidden_size_per_layer_input": 0,
    "sliding_window": 1024,
    "max_position_embeddings": 262_144,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    return gemma4_text.build(config.with_defaults(**DEFAULTS), b)
