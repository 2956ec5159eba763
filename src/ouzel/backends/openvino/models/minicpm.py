"""MiniCPM 1, 2 and 4 are llama with factors of the embedding, the layers and the logits.

Reference: openbmb/MiniCPM-2B-sft-bf16, modeling_minicpm.py. Transformers has no code of its own for
these models; with equal factors its Granite computes the same.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder, make_feed_forward
from ouzel.backends.openvino.graph.mlp import MlpShape
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models.minicpm3 import with_factors
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {"tie_word_embeddings": True, "scale_emb": 1, "scale_depth": 1, "dim_model_base": 1}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    # The first key stands for attention to chosen blocks of a long context, the second for
    # MiniCPM-MoE.
    for key in ("sparse_config", "num_experts"):
        if config.has(key):
            raise config.refuse(key, "null")
    bias = config.flag("attention_bias", False)
    shape = with_factors(
        DecoderShape.read(config).with_attention(qkv_bias=bias, output_bias=bias), config
    )
    mlp = replace(MlpShape.read(config), has_bias=config.flag("mlp_bias", False))
    return build_decoder(b, shape, make_feed_forward(mlp))
