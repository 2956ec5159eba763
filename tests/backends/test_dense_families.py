"""Each family's defaults for keys missing from config.json, and the settings that it refuses."""

from pathlib import Path

import pytest

from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import with_config
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("apertus", ("hidden_act", "attention_bias")),
        ("arcee", ("hidden_act", "attention_bias", "mlp_bias")),
        ("ernie4_5", ("rope_parameters",)),
        ("glm4", ("partial_rotary_factor", "attention_bias")),
        ("helium", ("rope_parameters",)),
        ("jais2", ("hidden_act", "attention_bias", "mlp_bias", "layer_norm_eps")),
        ("minicpm", ("attention_bias", "mlp_bias")),
        ("nemotron", ("partial_rotary_factor", "hidden_act", "norm_eps")),
        ("seed_oss", ("attention_bias", "attention_out_bias", "mlp_bias")),
        (
            "stablelm",
            ("partial_rotary_factor", "layer_norm_eps", "qk_layernorm", "use_parallel_residual"),
        ),
        ("starcoder2", ("hidden_act", "use_bias", "norm_epsilon")),
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
            "gpt-oss",
            {"layer_types": ["full_attention", "linear"]},
            "layer_types must be of .*, found .*linear",
        ),
        (
            "qwen2-moe",
            {"layer_types": ["full_attention", "linear", "linear"]},
            "layer_types must be of .* found .*linear",
        ),
        (
            "llama",
            {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            "rope_parameters and rope_scaling differ",
        ),
        (
            "olmo3",
            {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            "rope_parameters and rope_scaling differ",
        ),
        ("apertus", {"hidden_act": "silu"}, "hidden_act of apertus must be xielu, found silu"),
        (
            "minicpm",
            {"sparse_config": {"block_size": 64}},
            "sparse_config .* is not supported; supported: null",
        ),
        (
            "internlm3",
            {"attention_bias": False},
            "qkv_bias and bias of internlm3 must agree, found False, True",
        ),
        (
            "phi3",
            {"rope_scaling": {"type": "yarn", "factor": 2.0}},
            "rope type of phi3 must be one of .*, found yarn",
        ),
        (
            "seed_oss",
            {"partial_rotary_factor": 0.5},
            r"partial_rotary_factor 0\.5 is not supported",
        ),
        ("starcoder2", {"use_bias": False}, r"tensor .*\.bias is in the checkpoint"),
    ],
)
def test_unsupported_settings_of_a_family_are_refused(
    name: str, changes: dict[str, object], message: str, tmp_path: Path, load: Load
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load(with_config(tmp_path, name, (), **changes))
