"""Settings of config.json by family: missing keys, older keys, and unsupported values."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.checkpoint import list_tensors
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.graph.query_scale import QueryScale
from ouzel.backends.openvino.models import cohere2, exaone4, gemma3_text, ministral3, olmo3, qwen3
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import WEIGHTS, add_tensor, rename_tensors
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error

GEMMA3_4B: dict[str, Any] = {  # Any: JSON
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024,
}


def gemma3(**keys: object) -> HfConfig:
    return HfConfig(GEMMA3_4B | keys).with_defaults(**gemma3_text.DEFAULTS)


def test_gemma3_leaves_out_most_keys() -> None:
    shape = gemma3_text.decoder_shape(gemma3())
    attention = shape.attention
    assert (attention.num_heads, attention.num_kv_heads, attention.head_dim) == (8, 4, 256)
    assert attention.scale == 256**-0.5
    assert (shape.vocab_size, shape.rope.max_positions) == (262_208, 131_072)
    assert shape.tied_embeddings
    assert shape.sliding_windows == (*(1024, 1024, 1024, 1024, 1024, 0) * 5, 1024, 1024, 1024, 1024)
    assert shape.embedding_factor == 50.5  # the root of 2560 is 50.596, which bf16 rounds to 50.5
    assert shape.logits_softcap == 0


def test_only_layers_without_a_window_have_gemma3s_scaled_positions() -> None:
    for keys in (
        {"rope_theta": 1e6, "rope_local_base_freq": 20000.0},
        {
            "rope_scaling": None,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0},
            },
        },
    ):
        shape = gemma3_text.decoder_shape(gemma3(**keys))
        sliding_rope = shape.find_rope(0)
        assert sliding_rope is not None and shape.find_rope(5) is shape.rope
        turns = -np.arange(128) / 128
        np.testing.assert_allclose(shape.rope.inverse_frequencies, 1e6**turns / 8)
        np.testing.assert_allclose(sliding_rope.inverse_frequencies, 20000.0**turns)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping must be null, .*, found 50"),
        (
            {"use_bidirectional_attention": True},
            "use_bidirectional_attention must be false, found true",
        ),
        (
            {"layer_types": ["chunked_attention"] * 34},
            "layer_types must be of .*, found .*chunked_attention",
        ),
        ({"sliding_window": None}, "sliding_window is missing"),
    ],
)
def test_gemma3_with_another_attention_is_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ModelLoadError, match=message):
        gemma3_text.decoder_shape(gemma3(**keys))


@pytest.mark.parametrize(
    "names",
    [
        {"model.": "language_model.model.", "lm_head.": "language_model.lm_head."},
        {"model.": "model.language_model.", "lm_head.": "lm_head."},
    ],
    ids=["transformers 4", "transformers 5"],
)
def test_gemma3_is_the_language_model_of_a_family_whose_encoder_is_not_served(
    names: dict[str, str], tmp_path: Path, load: Load
) -> None:
    golden = read_golden("gemma3")
    directory = shutil.copytree(golden.directory, tmp_path / "gemma3")
    text = json.loads((directory / "config.json").read_text())
    whole = {
        "model_type": "shieldgemma2",
        "dtype": text.pop("dtype"),
        "tie_word_embeddings": False,
        "text_config": text,
    }
    (directory / "config.json").write_text(
        json.dumps(whole | {"vision_config": {"hidden_size": 32}})
    )
    for alone, beside in names.items():
        rename_tensors(directory / WEIGHTS, f'"{alone}'.encode(), f'"{beside}'.encode())
    add_tensor(directory / WEIGHTS, "vision_tower.vision_model.post_layernorm.bias")
    _, logits = Driver(load(directory)).prefill(golden.prompt, len(golden.prompt))
    assert relative_error(logits, golden.logits) < 1e-5


SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 65536,
}


def test_exaone4_has_no_positions_in_layers_without_a_window() -> None:
    shape = exaone4.decoder_shape(HfConfig(SIZES | {"sliding_window": 16}))
    assert shape.sliding_windows == (16, 16, 16, 0)
    assert shape.layer_ropes == (shape.rope, shape.rope, shape.rope, None)


def test_exaone4_without_windows_has_positions_in_all_layers() -> None:
    shape = exaone4.decoder_shape(
        HfConfig(SIZES | {"sliding_window": None, "sliding_window_pattern": None})
    )
    assert shape.sliding_windows == (0, 0, 0, 0)
    assert all(shape.find_rope(layer) is shape.rope for layer in range(4))


def test_exaone4s_pattern_of_letters_counts_only_where_its_layers_are_listed() -> None:
    letters = SIZES | {"sliding_window": 16, "sliding_window_pattern": "LLLG"}
    with pytest.raises(ModelLoadError, match="sliding_window_pattern must be an integer"):
        exaone4.decoder_shape(HfConfig(letters))
    kinds = ["sliding_attention", "full_attention"] * 2
    shape = exaone4.decoder_shape(HfConfig(letters | {"layer_types": kinds}))
    assert shape.sliding_windows == (16, 0, 16, 0)


def test_qwens_windows_have_defaults_of_their_own() -> None:
    """Windows need `use_sliding_window`; config.json may leave out their other settings."""
    config = SIZES | {"use_sliding_window": True, "num_hidden_layers": 30, "head_dim": 32}
    assert qwen3.decoder_shape(HfConfig(config)).sliding_windows == (0,) * 28 + (4096,) * 2
    assert not any(qwen3.decoder_shape(HfConfig(config | {"sliding_window": None})).sliding_windows)


def test_cohere2_turns_only_layers_with_a_window() -> None:
    shape = cohere2.decoder_shape(HfConfig(SIZES | {"sliding_window_pattern": 2}))
    assert shape.sliding_windows == (4096, 0, 4096, 0)
    assert shape.layer_ropes == (shape.rope, None, shape.rope, None)
    assert (shape.logits_factor, shape.norm.epsilon, shape.tied_embeddings) == (0.0625, 1e-5, True)


def test_olmo3_scales_positions_only_of_layers_without_a_window() -> None:
    scaling = {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 8192,
        "attention_factor": 1.2,
    }
    shape = olmo3.decoder_shape(HfConfig(SIZES | {"rope_theta": 1e6, "rope_scaling": scaling}))
    assert shape.sliding_windows == (4096, 4096, 4096, 0)
    sliding_rope = shape.find_rope(0)
    assert sliding_rope is not None and shape.find_rope(3) is shape.rope
    assert (shape.rope.scale, sliding_rope.scale) == (1.2, 1.0)
    np.testing.assert_allclose(sliding_rope.inverse_frequencies, 1e6 ** (-np.arange(16) / 16))


def test_ministral3_has_yarn_by_default() -> None:
    shape = ministral3.decoder_shape(HfConfig({**SIZES, "max_position_embeddings": 262_144}))
    assert shape.attention.head_dim == 128
    assert shape.query_scale == QueryScale(growth=0.1, interval=16384)
    assert shape.rope.scale == 1.0
    assert shape.rope.inverse_frequencies[-1] == pytest.approx(1e6 ** (-126 / 128) / 16)


def test_ministral3_without_a_growth_of_queries_is_refused() -> None:
    with pytest.raises(ModelLoadError, match="llama_4_scaling_beta is missing"):
        ministral3.decoder_shape(
            HfConfig(SIZES | {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}})
        )


def test_embeddings_are_tied_as_is_written_beside_the_text_model() -> None:
    """Mistral 3's text_config says false by default, even without an output layer."""
    text = {"tie_word_embeddings": False}
    assert (
        HfConfig({"tie_word_embeddings": True, "text_config": text})
        .text_model()
        .flag("tie_word_embeddings")
    )
    assert not HfConfig({"text_config": text}).text_model().flag("tie_word_embeddings")


# The text_config of published vision checkpoints, with a tensor and its shape.
SHORT_CONFIGS: dict[str, tuple[dict[str, Any], str, tuple[int, ...]]] = {
    "LLaVA 1.5": (
        {
            "model_type": "llama",
            "vocab_size": 32_064,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
        },
        "model.layers.31.mlp.down_proj.weight",
        (4096, 11_008),
    ),
    "Pixtral": (
        {
            "model_type": "mistral",
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "head_dim": 128,
            "sliding_window": None,
        },
        "model.layers.39.self_attn.k_proj.weight",
        (1024, 5120),
    ),
    "Aya Vision": (
        {
            "model_type": "cohere2",
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "intermediate_size": 14_336,
        },
        "model.embed_tokens.weight",
        (256_000, 4096),
    ),
    "InternVL3": (
        {
            "model_type": "qwen2",
            "hidden_size": 3584,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
        },
        "model.layers.31.mlp.up_proj.weight",
        (22_016, 3584),
    ),
    "qwen3": ({"model_type": "qwen3"}, "model.layers.31.self_attn.q_norm.weight", (128,)),
    "Granite Vision": ({"model_type": "granite"}, "lm_head.weight", (32_000, 4096)),
    "LFM2-VL": (
        {"model_type": "lfm2", "hidden_size": 2048},
        "model.embed_tokens.weight",
        (65_536, 2048),
    ),
    "lfm2_moe": (
        {"model_type": "lfm2_moe"},
        "model.layers.31.feed_forward.experts.31.w2.weight",
        (2048, 1792),
    ),
}


@pytest.mark.parametrize("name", SHORT_CONFIGS)
def test_missing_sizes_have_the_defaults_of_transformers(name: str, tmp_path: Path) -> None:
    text, tensor, shape = SHORT_CONFIGS[name]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "sees", "text_config": text}))
    assert list_tensors(tmp_path)[tensor] == shape


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        (
            "gpt-oss",
            "swiglu_limit",
            -1,
            "OpenVINO could not build a gpt_oss graph from this config.json: Check",
        ),
        ("lfm2", "conv_L_cache", 2**31 - 1, "conv_L_cache must be <= 1048576"),
        ("deepseek-v3", "first_k_dense_replace", 2**62, "is missing from the files of weights"),
        ("deepseek-v3", "kv_lora_rank", 2**31 - 1, "kv_lora_rank must be <= 1048576"),
        (
            "gemma4-experts",
            "hidden_size_per_layer_input",
            -1,
            "hidden_size_per_layer_input must be a positive integer",
        ),
    ],
)
def test_impossible_numbers_are_refused_with_one_sentence(
    name: str, key: str, value: int, message: str
) -> None:
    config = json.loads((GOLDEN / name / "config.json").read_text())
    holder = config["text_config"] if key in config.get("text_config", {}) else config
    holder[key] = value
    with pytest.raises(ModelLoadError, match=message) as refused:
        measure_checkpoint(GOLDEN / name, HfConfig(config), read_weights("auto"))
    assert "\n" not in str(refused.value)
