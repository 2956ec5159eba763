"""MPT has no positions, as the scores of attention fall with the distance (ALiBi), and no biases.

Its layers have layer norms and plain feed-forward layers. Reference: transformers,
models/mpt/modeling_mpt.py and configuration_mpt.py.
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
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "vocab_size": 50_368,
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "hidden_act": "gelu",
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    refuse_variants(config)
    config = config.with_values(intermediate_size=4 * config.size("hidden_size"))
    mlp = replace(MlpShape.read(config), is_gated=False, names=("", "up_proj", "down_proj"))
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp, "ffn"))


def decoder_shape(config: HfConfig) -> DecoderShape:
    attention = config.section("attn_config") or HfConfig({})
    shape = DecoderShape.read(config)
    shape = shape.with_attention(
        name="attn",
        is_fused=True,
        fused_name="Wqkv",
        output_name="out_proj",
        has_slopes=True,
        scale=attention.number("softmax_scale", shape.attention.scale),
        # 0 means no limit, too
        qkv_limit=attention.number("clip_qkv", 0.0) or None,
    )
    shape = replace(
        shape,
        norm=Norm(config.number("layer_norm_eps", 1e-5), is_centred=True),
        layer_norms=LayerNorms(before_mixer="norm_1", before_mlp="norm_2"),
        final_norm="model.norm_f",
    )
    return shape.without_rope(range(shape.num_layers))


def refuse_variants(config: HfConfig) -> None:
    """Raises ModelLoadError for variants of MosaicML's own code that transformers lacks."""
    config.require(no_bias=True, expansion_ratio=4, logit_scale=None)
    config.choice("norm_type", "low_precision_layernorm", "layernorm")
    if (attention := config.section("attn_config")) is not None:
        attention.require(
            attn_type="multihead_attention",
            prefix_lm=False,
            qk_ln=False,
            alibi=True,
            alibi_bias_max=8,
            rope=False,
            sliding_window_size=-1,
            kv_n_heads=config.size("num_attention_heads"),
        )
        if attention.has("softmax_scale") and not attention.number("softmax_scale") > 0:
            raise attention.refuse("softmax_scale", "numbers above 0")
        if attention.number("clip_qkv", 0.0) < 0:
            raise attention.refuse("clip_qkv", "numbers from 0")
    if (feed_forward := config.section("ffn_config")) is not None:
        feed_forward.require(ffn_type="mptmlp")
