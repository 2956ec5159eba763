"""Families with experts, sinks or gates: defaults of missing keys, refused settings."""

from pathlib import Path

import pytest

from ouzel.backends.openvino.models import muse_glimmer_text
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import with_config
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        (
            "glm4-moe",
            (
                *("partial_rotary_factor", "use_qk_norm", "norm_topk_prob", "n_shared_experts"),
                *("first_k_dense_replace", "n_group", "topk_group", "routed_scaling_factor"),
                *("rms_norm_eps", "num_nextn_predict_layers"),
            ),
        ),
        ("dots1", ("n_group", "topk_group", "attention_bias", "scoring_func")),
        ("granite-swa", ("layer_types", "rms_norm_eps", "tie_word_embeddings")),
        ("granitemoe-swa", ("tie_word_embeddings", "attention_bias")),
        ("hunyuan-v1-moe", ("rms_norm_eps", "attention_bias", "num_shared_expert", "use_cla")),
        ("lfm3", ("use_sandwich_norm", "use_attention_gate", "rope_parameters", "norm_eps")),
        ("lfm3-plain", ("layer_types",)),
        (
            "minimax-m2",
            ("rope_theta", "rms_norm_eps", "attn_type_list", "use_routing_bias", "scoring_func"),
        ),
    ],
)
def test_a_missing_key_has_the_default_of_the_family(
    name: str, left_out: tuple[str, ...], tmp_path: Path, load: Load
) -> None:
    golden = read_golden(name)
    _, logits = Driver(load(with_config(tmp_path, name, left_out))).prefill(
        golden.prompt, len(golden.prompt)
    )
    assert relative_error(logits, golden.logits) < 1e-5


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "glm4-moe",
            {"partial_rotary_factor": 0.2},
            "partial_rotary_factor must leave an even number of the 16 dimensions of a head",
        ),
        ("glm4-moe", {"scoring_func": "softmax"}, "scoring_func must be sigmoid, found softmax"),
        ("glm4-moe", {"n_group": 4, "topk_group": 3}, "6 experts cannot be in 4 groups"),
        ("dots1", {"scoring_func": "softmax"}, "scoring_func must be sigmoid, found softmax"),
        (
            "hunyuan-v1-moe",
            {"moe_topk": [2, 1]},
            "moe_topk \\[2, 1\\] is not supported; supported: the same value for all layers",
        ),
        ("hunyuan-v1-moe", {"use_cla": True}, "use_cla true is not supported; supported: only fal"),
        ("hunyuan-v1-moe", {"num_shared_expert": [2, 2]}, "num_shared_expert 2 is not supported"),
        ("minimax-m2", {"attn_type_list": [1, 0]}, "attn_type_list .* is not supported"),
        ("minimax-m2", {"qk_norm_type": "per_head"}, 'qk_norm_type "per_head" is not supported'),
        (
            "granite-swa",
            {"layer_rope_theta": None, "no_rope_layers": [0, 1, 1, 1]},
            "no_rope_layers .* is not supported; supported: only .*1",
        ),
        (
            "granite-swa",
            {"layer_rope_theta": [0, 1]},
            "layer_rope_theta must be a list of 4",
        ),
        ("lfm3", {"layer_types": ["conv", "mamba"] * 2}, "layer_types must be conv, .*found mamba"),
        ("minimax-m2", {"rotary_dim": 7}, "must leave an even number of the 16 dimensions"),
    ],
)
def test_unsupported_settings_are_refused_by_name(
    name: str, changes: dict[str, object], message: str, tmp_path: Path, load: Load
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load(with_config(tmp_path, name, (), **changes))


def test_muse_glimmers_windows_and_positions_are_in_the_same_layers_by_default() -> None:
    config = read_hf_config(read_golden("muse-glimmer").directory).text_model()
    config = config.with_values(layer_types=None, layer_rope_theta=None, num_hidden_layers=5)
    shape = muse_glimmer_text.decoder_shape(config.with_defaults(**muse_glimmer_text.DEFAULTS))
    assert shape.sliding_windows == (0, 8, 8, 8, 0)
    assert shape.layer_ropes == (None, shape.rope, shape.rope, shape.rope, None)
