"""Phi-1, Phi-1.5 and Phi-2 have one norm before parallel halves, and biases everywhere, also in the
head.

Only a part of each head is rotated. Reference: transformers, models/phi/modeling_phi.py and
configuration_phi.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    SHARED_NORM,
    DecoderShape,
    build_decoder,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "hidden_act": "gelu_new",
    "partial_rotary_factor": 0.5,
    "max_position_embeddings": 2048,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    norm = Norm(config.number("layer_norm_eps", 1e-5), is_centred=True, has_bias=True)
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(
        norm=norm,
        qkv_bias=True,
        output_bias=True,
        output_name="dense",
        qk_norm="head" if config.flag("qk_layernorm", False) else None,
        qk_norm_names=("q_layernorm", "k_layernorm"),
    )
    shape = replace(
        shape,
        norm=norm,
        layer_norms=SHARED_NORM,
        final_norm="model.final_layernorm",
        is_parallel=True,
        has_head_bias=True,
    )
    mlp = replace(MlpShape.read(config), is_gated=False, names=("", "fc1", "fc2"), has_bias=True)
    return build_decoder(b, shape, make_feed_forward(mlp))
