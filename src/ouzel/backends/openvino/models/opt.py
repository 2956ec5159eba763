"""OPT and Galactica have learned positions, layer norms and plain feed-forward layers.

OPT-350M has its norms after the sums, and a narrow embedding. Reference: transformers,
models/opt/modeling_opt.py and configuration_opt.py.
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

DEFAULTS = {
    "hidden_act": "relu",
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
FIRST, SECOND = "self_attn_layer_norm", "final_layer_norm"
NORMS = LayerNorms(before_mixer=FIRST, before_mlp=SECOND)
NORMS_OF_SUMS = LayerNorms(before_mixer="", before_mlp="", of_mixed=FIRST, of_layer=SECOND)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    mlp = replace(
        MlpShape.read(config),
        is_gated=False,
        names=("", "fc1", "fc2"),
        has_bias=config.flag("enable_bias", True),
    )
    return build_decoder(b, decoder_shape(config), make_feed_forward(mlp, name=""))


def decoder_shape(config: HfConfig) -> DecoderShape:
    bias, learned = (
        config.flag(key, True) for key in ("enable_bias", "layer_norm_elementwise_affine")
    )
    is_before = config.flag("do_layer_norm_before", True)
    has_final_norm = is_before and not config.flag("_remove_final_layer_norm", False)
    hidden_size = config.size("hidden_size")
    embedding_size = config.size("word_embed_proj_dim", hidden_size)
    shape = DecoderShape.read(config).with_attention(
        qkv_bias=bias, output_bias=bias, output_name="out_proj"
    )
    return replace(
        shape,
        norm=Norm(1e-5, is_centred=True, has_bias=learned, has_weight=learned),
        layer_norms=NORMS if is_before else NORMS_OF_SUMS,
        final_norm="model.final_layer_norm" if has_final_norm else "",
        embedding_size=0 if embedding_size == hidden_size else embedding_size,
        position_table=PositionTable(
            num_positions=config.size("max_position_embeddings"), offset=2
        ),
    )
