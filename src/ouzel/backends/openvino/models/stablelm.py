"""StableLM 2 and 3B have layer norms, rotate a quarter of each head, and may have parallel halves.

With parallel halves both halves of a layer take the same rows. Reference: transformers,
models/stablelm/modeling_stablelm.py and configuration_stablelm.py.
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

DEFAULTS = {"num_key_value_heads": 32, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = config.with_defaults(**DEFAULTS)
    epsilon = config.number("layer_norm_eps")
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(
        norm=Norm(epsilon, is_centred=True),
        qkv_bias=config.flag("use_qkv_bias", False),
        qk_norm="own head" if config.flag("qk_layernorm", False) else None,
        qk_norm_names=("q_layernorm", "k_layernorm"),
    )
    is_parallel = config.flag("use_parallel_residual", False)
    shape = replace(
        shape,
        norm=Norm(epsilon, is_centred=True, has_bias=True),
        is_parallel=is_parallel,
        layer_norms=SHARED_NORM if is_parallel else shape.layer_norms,
    )
    return build_decoder(b, shape, make_feed_forward(MlpShape.read(config)))
