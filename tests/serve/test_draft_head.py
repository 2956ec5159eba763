"""A server with an EAGLE-3 head gives the answers of a server without one."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.backends import quantize
from tests.serve.running import failure, serving
from tests.serve.test_speculation import answered, counted, num_proposed_ever, text

FLAGS = ("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prompt-lookup")
DRAFTING = {"num_assistant_tokens": 4}  # refused by a server without a source of proposals


def write_head(directory: Path) -> Path:
    """Writes a head of random numbers for the demo model."""
    model = json.loads((MODEL_DIRECTORY / "config.json").read_text())
    size, inner, heads, head_dim, drafted = model["hidden_size"], 128, 2, 64, 600
    shapes = {
        "fc": (size, 3 * size),
        "midlayer.self_attn.q_proj": (heads * head_dim, 2 * size),
        "midlayer.self_attn.k_proj": (head_dim, 2 * size),
        "midlayer.self_attn.v_proj": (head_dim, 2 * size),
        "midlayer.self_attn.o_proj": (size, heads * head_dim),
        "midlayer.mlp.gate_proj": (inner, size),
        "midlayer.mlp.up_proj": (inner, size),
        "midlayer.mlp.down_proj": (size, inner),
        "lm_head": (drafted, size),
    }
    random = np.random.default_rng(0)
    tensors: quantize.Tensors = {
        f"{name}.weight": ("F32", random.normal(0, 0.08, shape)) for name, shape in shapes.items()
    }
    for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
        tensors[f"midlayer.{name}.weight"] = ("F32", np.ones(size))
    tensors["norm.weight"] = ("F32", np.ones(size))
    tensors["d2t"] = ("I64", np.arange(drafted) * 2)  # ids 0, 3, 6 and so on
    directory.mkdir()
    quantize.save(directory / "model.safetensors", tensors)
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "hidden_size": size,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": 1,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "vocab_size": model["vocab_size"],
        "draft_vocab_size": drafted,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 2, 4]},
    }
    (directory / "config.json").write_text(json.dumps(config))
    return directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def plain(directory: Path) -> Iterator[httpx.Client]:
    with (
        serving(*FLAGS, cache_dir=directory / "cache") as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        yield http


@pytest.fixture(scope="module")
def drafting(directory: Path) -> Iterator[httpx.Client]:
    head = str(write_head(directory / "head"))
    with (
        serving(*FLAGS, "--draft-model", head, cache_dir=directory / "cache") as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        yield http


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 3, "n": 2}])
def test_answers_with_a_head_are_the_same(
    plain: httpx.Client, drafting: httpx.Client, sampling: dict[str, object]
) -> None:
    expected, before = answered(plain, **sampling), num_proposed_ever(drafting)
    first, again = (answered(drafting, **sampling, **DRAFTING) for _ in range(2))
    assert [choice["message"] for choice in first["choices"]] == [
        choice["message"] for choice in expected["choices"]
    ]
    assert text(again) == text(expected)
    num_proposed = num_proposed_ever(drafting) - before
    # the measured costs of this machine decide whether any draft pays
    assert sum(counted(first)) + sum(counted(again)) == num_proposed


def test_the_head_is_a_source_of_proposals(plain: httpx.Client, drafting: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, **DRAFTING}
    statuses = [
        each.post("/v1/chat/completions", json=body).status_code for each in (plain, drafting)
    ]
    assert statuses == [400, 200]


def test_a_head_of_another_model_ends_the_start(directory: Path) -> None:
    head = write_head(directory / "other")
    config = json.loads((head / "config.json").read_text()) | {"target_hidden_size": 512}
    (head / "config.json").write_text(json.dumps(config))
    errors = failure("--draft-model", str(head), cache_dir=directory / "cache")
    assert "target_hidden_size must be 256 as in the model, found 512" in errors
