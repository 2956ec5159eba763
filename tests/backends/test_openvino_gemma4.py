"""Gemma 4's config.json, as published and as transformers 5 saves it, and unsupported values."""

import re
from typing import Any

import pytest

from ouzel.backends.openvino.models.gemma4_text import DEFAULTS, read_shape
from ouzel.backends.openvino.weights.leftovers import refuse_leftovers
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN


def read_config_with(**changes: object) -> HfConfig:
    values = read_hf_config(GOLDEN / "gemma4-shared").values
    return HfConfig({**values, **changes})


def test_published_keys_have_the_meaning_of_per_layer_config() -> None:
    published: dict[str, Any] = read_config_with(global_head_dim=32).values
    del published["per_layer_config"]
    assert read_shape(HfConfig(published)).layers == read_shape(read_config_with()).layers
    published |= {
        "attention_k_eq_v": True,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
    }
    full = {"head_dim": 32, "num_key_value_heads": 1}
    saved = read_config_with(
        per_layer_config={"1": full, "3": full}, attention_k_eq_v=True, num_key_value_heads=2
    )
    assert read_shape(HfConfig(published)).layers == read_shape(saved).layers
    assert [layer.num_kv_heads for layer in read_shape(saved).layers] == [2, 1, 2, 1]


def test_the_last_layers_read_the_caches_of_the_last_of_their_kind() -> None:
    kinds = [
        "sliding_attention",
        "sliding_attention",
        "full_attention",
        "sliding_attention",
        "full_attention",
    ]
    layers = read_shape(
        read_config_with(
            num_hidden_layers=5,
            layer_types=kinds,
            per_layer_config={"2": {"head_dim": 32}, "4": {"head_dim": 32}},
        )
    ).layers
    assert [layer.cache for layer in layers] == [0, 1, 2, 1, 2]
    assert [layer.inner_size for layer in layers] == [32, 32, 32, 64, 64]


def test_the_last_layer_has_no_window() -> None:
    layers = read_shape(
        HfConfig({"model_type": "gemma4_text"}).with_defaults(
            **{**DEFAULTS, "num_hidden_layers": 8}
        )
    ).layers
    assert [layer.sliding_window for layer in layers] == [512, 512, 512, 512, 512, 0, 512, 0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"use_bidirectional_attention": "all"},
            "use_bidirectional_attention must be null or vision, found all",
        ),
        (
            {"num_kv_shared_layers": 3},
            "num_kv_shared_layers must leave a layer of each kind of 4, found 3",
        ),
        (
            {"num_kv_shared_layers": -1},
            "num_kv_shared_layers must leave a layer of each kind of 4, found -1",
        ),
        (
            {"per_layer_config": {"0": {"sliding_window": 3}}},
            "per_layer_config: sliding_window is not supported",
        ),
        (
            {"per_layer_config": {"3": {"head_dim": 64}}},
            "per_layer_config must have one head_dim for all layers",
        ),
        (
            {"num_key_value_heads": 3},
            "num_attention_heads 4 is no multiple of the 3 key-value heads of layer 0",
        ),
        (
            {"vocab_size_per_layer_input": 64},
            "vocab_size_per_layer_input must be >= vocab_size 128, found 64",
        ),
        (
            {"layer_types": ["chunked_attention"] * 4},
            "layer_types must be sliding_attention and full_attention",
        ),
        (
            {"rope_parameters": {"full_attention": {}}},
            "rope_parameters must have sliding_attention",
        ),
    ],
)
def test_unsupported_settings_are_refused_by_name(
    changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ModelLoadError, match=re.escape(sentence)):
        read_shape(read_config_with(**changes))


def test_unused_weights_of_layers_with_shared_keys_are_ignored() -> None:
    used = {"model.layers.0.self_attn.k_proj.weight"}
    shared = "model.layers.2.self_attn.k_norm.weight"
    refuse_leftovers(read_config_with(), [*used, shared], used, has_other_modes=False)
    with pytest.raises(ModelLoadError, match="has no such tensor"):
        refuse_leftovers(
            read_config_with(num_kv_shared_layers=1), [*used, shared], used, has_other_modes=False
        )
