"""Phi-3, Phi-3.5, Phi-4 and Phi-4-mini are llama with fused projections.

Some of these models rotate only a part of each head. Reference: transformers,
models/phi3/modeling_phi3.py and configuration_phi3.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    build_decoder,
    equal_windows,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.context_length import rope_section, rope_type
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

ROPE_TYPES = ("default", "longrope", "su")  # "su" is longrope's older name


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(rms_norm_eps=1e-5, original_max_position_embeddings=4096)
    if (kind := rope_type(rope_section(config))) not in ROPE_TYPES:
        raise ModelLoadError(
            f"config.json: rope type of phi3 must be one of {', '.join(ROPE_TYPES)}, found {kind}"
        )
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(is_fused=True)
    shape = replace(shape, sliding_windows=equal_windows(config))
    return build_decoder(
        b, shape, make_feed_forward(replace(MlpShape.read(config), fused_name="gate_up_proj"))
    )
