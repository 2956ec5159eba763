"""Tests the files of the demo model's drafting head, which training/demo_head makes."""

import json
from math import prod
from pathlib import Path
from typing import Any  # JSON, and the element types of arrays

import numpy as np
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.backends.checkpoint_edits import WEIGHTS

HEAD = Path(__file__).parent / "demo_head"
LAYERS = "eagle_aux_hidden_state_layer_ids"
SIZES = {"BF16": 2, "BOOL": 1, "I64": 8}


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HEAD / "config.json").read_text())
    return found


@pytest.fixture(scope="module")
def target() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MODEL_DIRECTORY / "config.json").read_text())
    return found


def read_header(path: Path) -> tuple[dict[str, Any], bytes]:
    """Returns the entries of a safetensors file, as JSON has them, and the bytes of its tensors."""
    contents = path.read_bytes()
    start = 8 + int.from_bytes(contents[:8], "little")
    entries = json.loads(contents[8:start])
    entries.pop("__metadata__", None)
    return entries, contents[start:]


def read_tensor(name: str, dtype: type) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns a tensor of the head that numpy can read."""
    entries, contents = read_header(HEAD / WEIGHTS)
    start, end = entries[name]["data_offsets"]
    return np.frombuffer(contents[start:end], dtype).reshape(entries[name]["shape"])


def read_values(name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Returns a bfloat16 tensor of the head in float32."""
    return (read_tensor(name, np.uint16).astype(np.uint32) << 16).view(np.float32)


def test_the_tensors_are_those_of_a_published_head(config: dict[str, Any]) -> None:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    drafted = config["draft_vocab_size"]
    num_streams = len(config[LAYERS])
    weights = {
        "fc.weight": [hidden, num_streams * hidden],
        "midlayer.self_attn.q_proj.weight": [queries, 2 * hidden],
        "midlayer.self_attn.k_proj.weight": [keys, 2 * hidden],
        "midlayer.self_attn.v_proj.weight": [keys, 2 * hidden],
        "midlayer.self_attn.o_proj.weight": [hidden, queries],
        "midlayer.mlp.gate_proj.weight": [inner, hidden],
        "midlayer.mlp.up_proj.weight": [inner, hidden],
        "midlayer.mlp.down_proj.weight": [hidden, inner],
        "midlayer.input_layernorm.weight": [hidden],
        "midlayer.hidden_norm.weight": [hidden],
        "midlayer.post_attention_layernorm.weight": [hidden],
        "norm.weight": [hidden],
        "lm_head.weight": [drafted, hidden],
    }
    expected = {name: ("BF16", shape) for name, shape in weights.items()}
    expected["d2t"] = ("I64", [drafted])
    expected["t2d"] = ("BOOL", [config["vocab_size"]])
    entries, contents = read_header(HEAD / WEIGHTS)
    assert {n: (entry["dtype"], entry["shape"]) for n, entry in entries.items()} == expected
    assert len(contents) == sum(SIZES[dtype] * prod(shape) for dtype, shape in expected.values())


def test_the_draft_ids_name_different_tokens_of_the_target(config: dict[str, Any]) -> None:
    target_ids = np.arange(config["draft_vocab_size"]) + read_tensor("d2t", np.int64)
    assert (np.diff(target_ids) > 0).all()
    assert np.array_equal(np.flatnonzero(read_tensor("t2d", np.bool_)), target_ids)


def test_the_head_can_draft_the_end_of_an_answer(target: dict[str, Any]) -> None:
    assert read_tensor("t2d", np.bool_)[target["eos_token_id"]]


def test_all_weights_are_finite_and_trained() -> None:
    entries, _ = read_header(HEAD / WEIGHTS)
    for name, entry in entries.items():
        if entry["dtype"] == "BF16":
            values = read_values(name)
            assert np.isfinite(values).all(), name
            assert values.std() > 0, name  # a norm that was never trained has only ones


def test_the_head_fits_the_demo_model(config: dict[str, Any], target: dict[str, Any]) -> None:
    for key in ("hidden_size", "vocab_size", "max_position_embeddings", "rope_theta"):
        assert config[key] == target[key], key
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["model_type"] == "llama"


def test_both_counts_of_layers_name_the_same_streams(
    config: dict[str, Any], target: dict[str, Any]
) -> None:
    inputs, section = config[LAYERS], config["eagle_config"]
    outputs = section[LAYERS]
    assert section["use_aux_hidden_state"] is True
    assert inputs == [layer + 1 for layer in outputs]
    assert inputs == sorted(set(inputs))
    assert set(inputs + outputs) <= set(range(target["num_hidden_layers"]))
