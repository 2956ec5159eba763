"""Settings of config.json of families with recurrent layers, as checkpoints are published."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.checkpoint import list_tensors
from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.models import bamba, falcon_h1
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN

FALCON_H1_05B: dict[str, Any] = {  # Any: JSON
    "attention_in_multiplier": 1.0,
    "attention_out_multiplier": 0.9375,
    "attn_layer_indices": None,
    "embedding_multiplier": 5.656854249492381,
    "head_dim": 64,
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "key_multiplier": 0.39062499999999994,
    "lm_head_multiplier": 0.0390625,
    "mamba_chunk_size": 128,
    "mamba_d_head": 64,
    "mamba_d_ssm": 1536,
    "mamba_d_state": 128,
    "mamba_n_heads": 24,
    "mamba_norm_before_gate": False,
    "mamba_rms_norm": False,
    "mamba_use_mlp": True,
    "max_position_embeddings": 16384,
    "mlp_expansion_factor": 8,
    "mlp_multipliers": [0.8838834764831844, 0.5859375],
    "model_type": "falcon_h1",
    "num_attention_heads": 8,
    "num_hidden_layers": 36,
    "num_key_value_heads": 2,
    "rope_scaling": None,
    "rope_theta": 100000000000.0,
    "ssm_in_multiplier": 1.25,
    "ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738],
    "ssm_out_multiplier": 0.23570226039551587,
    "vocab_size": 32784,
}
BAMBA_9B: dict[str, Any] = {  # Any: JSON
    "attn_layer_indices": [9, 18, 27],
    "attn_rotary_emb": 64,
    "mamba_d_head": 64,
    "mamba_d_state": 128,
    "model_type": "bamba",
    "rope_theta": 10000.0,
    "vocab_size": 128256,
}
CODESTRAL_MAMBA: dict[str, Any] = {  # Any: JSON
    "model_type": "mamba2",
    "norm_before_gate": True,
    "rms_norm": True,
    "time_step_limit": [0.0, math.inf],
    "time_step_rank": 256,
}

FALCON_MAMBA_7B: dict[str, Any] = {  # Any: JSON
    "hidden_size": 4096,
    "intermediate_size": 8192,
    "layer_norm_epsilon": 1e-5,
    "model_type": "falcon_mamba",
    "num_hidden_layers": 64,
    "state_size": 16,
    "tie_word_embeddings": False,
    "time_step_rank": 256,
    "vocab_size": 65024,
}


@pytest.mark.parametrize(
    ("config", "tensor", "shape"),
    [
        (FALCON_MAMBA_7B, "model.layers.63.mixer.x_proj.weight", (288, 8192)),
        ({"model_type": "mamba"}, "model.layers.31.mixer.dt_proj.weight", (1536, 48)),
        (
            FALCON_H1_05B | {"num_hidden_layers": 2},
            "model.layers.1.mamba.in_proj.weight",
            (3352, 1024),
        ),
        (BAMBA_9B, "model.layers.27.self_attn.k_proj.weight", (1024, 4096)),
        (CODESTRAL_MAMBA, "model.layers.63.mixer.conv1d.weight", (10240, 1, 4)),
    ],
    ids=["Falcon Mamba 7B", "mamba", "Falcon-H1-0.5B", "Bamba-9B", "Codestral Mamba"],
)
def test_published_settings_are_accepted(
    config: dict[str, Any], tensor: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert list_tensors(tmp_path)[tensor] == shape


def test_falcon_h1_has_factors_on_keys_embeddings_and_logits() -> None:
    shape = falcon_h1.decoder_shape(HfConfig(FALCON_H1_05B | {"num_hidden_layers": 1}))
    assert shape.attention.scale == pytest.approx(0.390625 / 8)
    assert (shape.embedding_factor, shape.logits_factor) == (math.sqrt(32), 0.0390625)


def test_bamba_turns_half_of_each_head_whatever_stands_beside_the_rotary_parameters() -> None:
    config = HfConfig(BAMBA_9B | {"partial_rotary_factor": 1.0}).with_defaults(**bamba.DEFAULTS)
    assert len(bamba.decoder_shape(config).rope.inverse_frequencies) == 32


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("falcon-h1", {"ssm_multipliers": [1.0]}, "ssm_multipliers must be a list of 5 numbers"),
        ("falcon-h1", {"mlp_multipliers": [1.0]}, "mlp_multipliers must be a list of 2 numbers"),
        (
            "falcon-h1",
            {"mamba_d_ssm": 96},
            "mamba_n_heads times mamba_d_head must be 96, found 8 times 8",
        ),
        ("mamba2", {"expand": 3}, "num_heads times head_dim must be 96, found 8 times 8"),
        ("mamba2", {"time_step_limit": [0.0, 0.1]}, "time_step_limit must be a number >= 0 and"),
        ("bamba", {"attn_rotary_emb": 16}, "attn_rotary_emb 16 is not supported; supported: 8"),
        ("bamba", {"attn_layer_indices": "all"}, "attn_layer_indices must be a list of integers"),
    ],
)
def test_settings_that_contradict_the_graph_are_refused(
    name: str, changes: dict[str, object], message: str
) -> None:
    config = json.loads((GOLDEN / name / "config.json").read_text()) | changes
    with pytest.raises(ModelLoadError, match=message):
        measure_checkpoint(GOLDEN / name, HfConfig(config), read_weights("auto"))
