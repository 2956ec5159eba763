"""OLMoE has experts in every layer, and RMS norms over whole rows of queries and keys.

Queries, keys and values may be clipped. Reference: transformers, models/olmoe/modeling_olmoe.py and
configuration_olmoe.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder
from ouzel.backends.openvino.graph.experts import ExpertsShape, make_experts
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "rms_norm_eps": 1e-5,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "max_position_embeddings": 4096,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", False)
    limit = config.number("clip_qkv") if config.has("clip_qkv") else None
    shape = DecoderShape.read(config).with_attention(
        qk_norm="row", qkv_bias=bias, output_bias=bias, qkv_limit=limit
    )
    routing = Routing.read(config)
    return build_decoder(
        b, shape, make_experts(routing, ExpertsShape.read(config, routing.num_experts))
    )
