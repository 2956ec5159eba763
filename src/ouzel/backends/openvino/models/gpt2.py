"""GPT-2 and DistilGPT2 have learned positions, layer norms, plain feed-forward layers, and biases
everywhere.

Matrices of layers are stored transposed (Conv1D). Reference: transformers,
models/gpt2/modeling_gpt2.py and configuration_gpt2.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    LayerNorms,
    build_decoder,
    make_feed_forward,
)
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.position_table import PositionTable
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "tie_word_embeddings": True}
NORMS = LayerNorms(before_mixer="ln_1", before_mlp="ln_2")


def build(config: HfConfig, b: Builder) -> LanguageModel:
    refuse_variants(config)
    hidden_size = config.size("hidden_size")
    inner_size = config.size("intermediate_size", 4 * hidden_size)
    config = config.with_defaults(**DEFAULTS).with_values(intermediate_size=inner_size)
    b.has_transposed_layers = True
    mlp = replace(
        MlpShape.read(config), is_gated=False, names=("", "c_fc", "c_proj"), has_bias=True
    )
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp))


def decoder_shape(config: HfConfig) -> DecoderShape:
    shape = DecoderShape.read(config).with_attention(
        name="attn",
        is_fused=True,
        fused_name="c_attn",
        output_name="c_proj",
        qkv_bias=True,
        output_bias=True,
    )
    if not config.flag("scale_attn_weights", True):
        shape = shape.with_attention(scale=1.0)
    return replace(
        shape,
        norm=Norm(config.number("layer_norm_eps"), is_centred=True, has_bias=True),
        layer_norms=NORMS,
        position_table=PositionTable(num_positions=config.size("max_position_embeddings")),
    )


def refuse_variants(config: HfConfig) -> None:
    for key in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        if config.flag(key, False):
            raise config.refuse(key, "false")
    if config.has("quantization_config"):
        raise config.refuse("quantization_config", "null, because Conv1D is stored transposed")
