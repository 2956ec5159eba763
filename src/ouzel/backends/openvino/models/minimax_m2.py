"""MiniMax-M2, M2.1 and M2.5 have experts in every layer, norms over whole rows of queries and keys,
and half of each head rotated.

The tensors of its prediction layers are not published, so --mtp is refused. Reference:
transformers, models/minimax_m2/modeling_minimax_m2.py and configuration_minimax_m2.py.
"""

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, build_decoder
from ouzel.backends.openvino.graph.experts import make_experts
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.models import mixtral
from ouzel.checkpoint.hf_config import HfConfig

DEFAULTS = {
    "head_dim": 128,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 5_000_000.0,
    "max_position_embeddings": 196_608,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
}


def build(config: HfConfig, b: Builder) -> LanguageModel:
    config = with_rotated_share(config.with_defaults(**DEFAULTS))
    config.require(
        scoring_func="sigmoid",
        use_qk_norm=True,
        qk_norm_type="per_layer",
        use_routing_bias=True,
        shared_intermediate_size=0,
        attn_type_list=[1] * config.size("num_hidden_layers"),  # 0: linear attention
    )
    shape = DecoderShape.read(config, rotates_partly=True).with_attention(qk_norm="row")
    routing = Routing(
        num_experts=config.size("num_local_experts"),
        num_chosen=config.size("num_experts_per_tok"),
        scores="sigmoid",
        is_normalised=True,
    )
    experts = make_experts(
        routing,
        mixtral.experts_shape(config, routing),
        place="block_sparse_moe",
        correction="e_score_correction_bias",
    )
    return build_decoder(b, shape, experts)


def with_rotated_share(config: HfConfig) -> HfConfig:
    """Returns the config with the share for `rotary_dim`, which published files have instead."""
    if not config.has("rotary_dim"):
        return config
    share = config.size("rotary_dim") / config.size("head_dim")
    return config.with_defaults(partial_rotary_factor=share)
