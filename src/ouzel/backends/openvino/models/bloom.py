"""BLOOM and BLOOMZ have no positions: the scores of attention fall with the distance (ALiBi).

They have layer norms, also over the embeddings, plain feed-forward layers, and biases everywhere.
Queries, keys and values are one tensor, head by head. Reference: transformers,
models/bloom/modeling_bloom.py and configuration_bloom.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.gpt_neox import MLP_NAMES
from ouzel.checkpoint.hf_config import HfConfig

# The code of transformers has no limit of positions; published models were trained with 2048.
DEFAULTS = {
    "tie_word_embeddings": True,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 2048,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config.require(apply_residual_connection_post_layernorm=False)
    hidden_size = config.size("hidden_size")
    config = config.with_defaults(**DEFAULTS).with_values(intermediate_size=4 * hidden_size)
    mlp = replace(MlpShape.read(config), is_gated=False, names=MLP_NAMES, has_bias=True)
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    shape = DecoderShape.read(config).with_attention(
        name="self_attention",
        is_fused=True,
        fused_name="query_key_value",
        is_fused_by_head=True,
        output_name="dense",
        qkv_bias=True,
        output_bias=True,
        has_slopes=True,
    )
    shape = replace(
        shape,
        norm=Norm(config.number("layer_norm_eps", 1e-5), is_centred=True, has_bias=True),
        embedding_norm="model.word_embeddings_layernorm",
    )
    return shape.without_rope(range(shape.num_layers))
