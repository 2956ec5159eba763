"""GPT-NeoX, Pythia and the first StableLM have parallel halves, layer norms, biases everywhere, and
a quarter of each head rotated.

Queries, keys and values are one tensor, head by head. Reference: transformers,
models/gpt_neox/modeling_gpt_neox.py and configuration_gpt_neox.py.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "partial_rotary_factor": 0.25,
    "hidden_act": "gelu",
    "max_position_embeddings": 2048,
}
MLP_NAMES = ("", "dense_h_to_4h", "dense_4h_to_h")


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    bias = config.flag("attention_bias", True)
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(
        name="attention",
        is_fused=True,
        fused_name="query_key_value",
        is_fused_by_head=True,
        output_name="dense",
        qkv_bias=bias,
        output_bias=bias,
    )
    shape = replace(
        shape,
        norm=Norm(config.number("layer_norm_eps", 1e-5), is_centred=True, has_bias=True),
        final_norm="model.final_layer_norm",
        is_parallel=config.flag("use_parallel_residual", True),
    )
    mlp = replace(MlpShape.read(config), is_gated=False, names=MLP_NAMES, has_bias=True)
    return build_decoder(b, shape, make_feed_forward(mlp))
