"""Tests the files of the demo model's drafting head, which training/demo_head makes."""

import json
from pathlib import Path
from typing import Any  # JSON

import numpy as np
import pytest

from benchmarks.draft_head import list_shapes
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.demo import MODEL_DIRECTORY
from tests.backends import quantize
from tests.backends.checkpoint_edits import WEIGHTS

HEAD = Path(__file__).parent / "demo_head"
LAYERS = "eagle_aux_hidden_state_layer_ids"


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HEAD / "config.json").read_text())
    return found


@pytest.fixture(scope="module")
def target() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MODEL_DIRECTORY / "config.json").read_text())
    return found


@pytest.fixture(scope="module")
def tensors() -> quantize.Tensors:
    return quantize.load(HEAD / WEIGHTS)


def test_the_tensors_are_those_of_a_published_head(
    config: dict[str, Any], tensors: quantize.Tensors
) -> None:
    expected = {name: ("BF16", shape) for name, shape in list_shapes(HfConfig(config)).items()}
    expected["d2t"] = ("I64", (config["draft_vocab_size"],))
    expected["t2d"] = ("BOOL", (config["vocab_size"],))
    assert {name: (kind, values.shape) for name, (kind, values) in tensors.items()} == expected
    content = (HEAD / WEIGHTS).read_bytes()
    header_bytes = 8 + int.from_bytes(content[:8], "little")
    assert len(content) == header_bytes + sum(values.nbytes for _, values in tensors.values())


def test_the_draft_ids_name_different_tokens_of_the_target(
    config: dict[str, Any], tensors: quantize.Tensors
) -> None:
    target_ids = np.arange(config["draft_vocab_size"]) + tensors["d2t"][1]
    assert (np.diff(target_ids) > 0).all()
    assert np.array_equal(np.flatnonzero(tensors["t2d"][1]), target_ids)


def test_the_head_can_draft_the_end_of_an_answer(
    target: dict[str, Any], tensors: quantize.Tensors
) -> None:
    assert tensors["t2d"][1][target["eos_token_id"]]


def test_all_weights_are_finite_and_trained(tensors: quantize.Tensors) -> None:
    for name, (kind, bits) in tensors.items():
        if kind == "BF16":
            values = (bits.astype(np.uint32) << 16).view(np.float32)
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
