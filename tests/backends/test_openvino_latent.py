"""Latent attention caches one row for all heads, scales products, and refuses some settings."""

import math
import re

import pytest

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.latent_attention import LatentShape
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.safetensors import Checkpoint
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN


def read_config_with(name: str, **changes: object) -> HfConfig:
    return HfConfig({**read_hf_config(GOLDEN / name).values, **changes})


def builder(name: str) -> Builder:
    return Builder(MeasuredWeights(Checkpoint(GOLDEN / name)), read_weights("int8"))


def test_one_row_of_all_heads_is_cached() -> None:
    """The latent row is the value and, with the rotary part behind it, the key."""
    graph = family("deepseek_v3")(read_config_with("deepseek-v3"), builder("deepseek-v3")).graph
    attentions = [
        node for node in graph.get_ops() if node.get_type_name() == "PagedAttentionExtension"
    ]
    names = ("num_k_heads", "k_head_size", "num_v_heads", "v_head_size")
    cached = [[node.get_rt_info()[name].astype(int) for name in names] for node in attentions]
    assert cached == [[1, 32 + 8, 1, 32]] * 2


def test_queries_may_be_projected_in_one_step() -> None:
    """`q_lora_rank: null` means that queries have no low-rank projection."""
    assert LatentShape.read(read_config_with("deepseek-v2"), is_paired=True).query_rank == 0
    assert (
        LatentShape.read(read_config_with("deepseek-v2", q_lora_rank=48), is_paired=True).query_rank
        == 48
    )


def test_an_extended_context_scales_the_products() -> None:
    scaling = {
        "type": "yarn",
        "factor": 40.0,
        "original_max_position_embeddings": 4096,
        "mscale_all_dim": 0.707,
    }
    shape = LatentShape.read(read_config_with("deepseek-v2", rope_scaling=scaling), is_paired=True)
    assert shape.scale == pytest.approx((16 + 8) ** -0.5 * (0.1 * 0.707 * math.log(40) + 1) ** 2)
    plain = LatentShape.read(read_config_with("deepseek-v2", rope_scaling=None), is_paired=True)
    assert plain.scale == pytest.approx((16 + 8) ** -0.5)


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (
            "minicpm3",
            {"num_key_value_heads": 2},
            "num_key_value_heads must be num_attention_heads 4",
        ),
        ("deepseek-v2", {"norm_topk_prob": True}, "norm_topk_prob must be false, found true"),
        ("deepseek-v2", {"scoring_func": "sigmoid"}, "scoring_func must be softmax, found sigmoid"),
        (
            "deepseek-v2",
            {"topk_method": "noaux_tc"},
            "topk_method must be greedy or group_limited_greedy",
        ),
        ("deepseek-v2", {"moe_layer_freq": 2}, "moe_layer_freq must be 1, found 2"),
        ("deepseek-v3", {"scoring_func": "softmax"}, "scoring_func must be sigmoid, found softmax"),
        ("deepseek-v3", {"topk_method": "greedy"}, "topk_method must be noaux_tc, found greedy"),
        (
            "glm4-moe-lite",
            {"mlp_layer_types": ["sparse", "none"]},
            "mlp_layer_types must be dense and sparse",
        ),
    ],
)
def test_unsupported_settings_are_refused_by_name(
    name: str, changes: dict[str, object], sentence: str
) -> None:
    config = read_config_with(name, **changes)
    with pytest.raises(ModelLoadError, match=re.escape(sentence)):
        family(config.model_type)(config, builder(name))
