"""Phi-3.5-MoE has layer norms, biases of attention and head, and two experts of a sparse mixer.

Reference: transformers, models/phimoe/modeling_phimoe.py and configuration_phimoe.py. In a context
that is longer than the original one this transformers has the short factors of the rotary
positions; here it has the long ones, as the model's own code.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, equal_windows
from ouzel.backends.openvino.graph.experts import MIXTRAL_TENSORS, ExpertsShape, make_experts
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "rope_theta": 1_000_000.0,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 131_072,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    if config.size("num_experts_per_tok") != 2:
        raise config.refuse("num_experts_per_tok", "2")
    routing = replace(
        Routing.read(config),
        scores="sparse_mixer",
        jitter=config.number("router_jitter_noise", 0.01),
    )
    experts = replace(
        ExpertsShape.read(config, routing.num_experts),
        tensors=MIXTRAL_TENSORS,
    )
    return build_decoder(
        b, decoder_shape(config), make_experts(routing, experts, place="block_sparse_moe")
    )


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias = config.flag("attention_bias", False)
    shape = DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias)
    return replace(
        shape,
        norm=Norm(config.number("rms_norm_eps", 1e-5), is_centred=True, has_bias=True),
        has_head_bias=config.flag("lm_head_bias", False),
        sliding_windows=equal_windows(config),
    )
