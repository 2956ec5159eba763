"""Mixtures of experts: their products in both forms, their storage, and their choice."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.graph import experts
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.routing import Routing, route
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.safetensors import Checkpoint, read_header
from ouzel.backends.openvino.weights.source import MemoryWriter, Tensor
from ouzel.checkpoint.weight_files import SINGLE_FILE
from ouzel.config import EngineConfig, ModelConfig
from ouzel.config.weights import read_weights
from ouzel.engine.base import ModelRunner
from ouzel.errors import ModelLoadError
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error
from tests.backends.test_openvino_weights import save
from tests.release_only import release_only

EXACT = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)


def create(directory: Path, cache_dir: Path) -> ModelRunner:
    return create_runner(
        ModelConfig(model=str(directory), weights="f32", cache_dir=str(cache_dir)), EXACT
    )


@pytest.mark.parametrize("name", ["qwen3-moe", "gpt-oss"])
def test_grouped_products_agree_with_slices(
    name: str, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares prompts and steps of one token, in which most experts have no row."""
    golden = read_golden(name)
    sliced = Driver(load(golden.directory))
    monkeypatch.setattr(experts, "MAX_SLICED_EXPERTS", 0)
    grouped = Driver(create(golden.directory, tmp_path))

    (sequence, logits), (other, other_logits) = (
        each.prefill(golden.prompt, 40) for each in (sliced, grouped)
    )
    assert relative_error(other_logits, logits) < 1e-5
    assert relative_error(other_logits, golden.logits) < 1e-5
    for token_id in golden.greedy[:8]:
        rows = sliced.step([(sequence, [token_id])]), grouped.step([(other, [token_id])])
        assert relative_error(rows[1], rows[0]) < 1e-5


def test_experts_of_narrower_rows_are_refused(tmp_path: Path) -> None:
    directory = shutil.copytree(read_golden("nemotron-h-moe").directory, tmp_path / "model")
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"moe_latent_size": 16}))
    with pytest.raises(ModelLoadError, match="moe_latent_size 16 is not supported"):
        create(directory, tmp_path / "cache")


@pytest.mark.parametrize(
    "name", ["gpt-oss", "deepseek-v3", *release_only("routers of further models", "mixtral")]
)
def test_a_router_is_float32_in_every_precision(name: str, load: Load) -> None:
    """From the choice back to the rows of the layer, the graph computes in float32."""
    runner = load(read_golden(name).directory, "bf16", "auto", "auto")
    if runner.info.precision == "f32":
        pytest.skip("this CPU has no bf16: everything is in float32")
    # the runner has no public attribute for the compiled model
    nodes = runner._compiled.get_runtime_model().get_ops()  # type: ignore[attr-defined]
    waiting = [node for node in nodes if read_property(node, "layerType") == "TopK"]
    found = set()
    while waiting:
        node = waiting.pop()
        if (kind := read_property(node, "layerType")) not in ("Const", "Input", "Reorder"):
            found.add((kind, read_property(node, "runtimePrecision")))
            waiting += [value.get_node() for value in node.input_values()]
    assert {"TopK", "FullyConnected"} <= {kind for kind, _ in found}
    assert not {precision for _, precision in found} & {"bf16", "f16"}


def read_property(node: ov.Node, key: str) -> str:
    return str(node.get_rt_info()[key].astype(str))


def test_experts_may_be_stored_as_one_tensor(tmp_path: Path) -> None:
    golden = read_golden("qwen3-moe")
    directory = tmp_path / "stacked"
    shutil.copytree(golden.directory, directory)
    save(directory / SINGLE_FILE, stacked(golden.directory))
    _, logits = Driver(create(directory, tmp_path / "cache")).prefill(golden.prompt, 40)
    assert relative_error(logits, golden.logits) < 1e-5


def stacked(directory: Path) -> dict[str, NDArray[np.float32]]:
    """Stacks the matrices of all experts into one tensor for each layer and kind."""
    checkpoint = Checkpoint(directory)
    tensors = {
        name: np.concatenate(list(checkpoint.rows(Tensor(name, location.shape)))).reshape(
            location.shape
        )
        for name, location in read_header(directory / SINGLE_FILE).items()
    }
    for prefix in ("model.layers.0.mlp.experts.", "model.layers.2.mlp.experts."):
        each = [
            [tensors.pop(f"{prefix}{number}.{name}_proj.weight") for name in ("gate", "up", "down")]
            for number in range(5)
        ]
        tensors[prefix + "gate_up_proj"] = np.stack(
            [np.concatenate([gate, up]) for gate, up, _ in each]
        )
        tensors[prefix + "down_proj"] = np.stack([down for _, _, down in each])
    return tensors


# Routing. The router's matrix is the identity, so rows are logits.

NUM_EXPERTS = 8
CORRECTION = np.linspace(-0.4, 0.4, NUM_EXPERTS, dtype=np.float32)
SOFTMAX = Routing(num_experts=NUM_EXPERTS, num_chosen=3)
SIGMOID = replace(SOFTMAX, scores="sigmoid", is_normalised=True, factor=2.5)
IN_GROUPS = replace(
    SIGMOID, num_groups=4, num_chosen_groups=2, num_group_scores=2, added_to_sum=1e-20
)
ROUTINGS = {
    "softmax": (SOFTMAX, False),
    "softmax, normalised": (replace(SOFTMAX, is_normalised=True), False),
    "softmax, corrected": (replace(SOFTMAX, is_normalised=True, smallest_sum=0.7), True),
    "softmax of the chosen": (replace(SOFTMAX, scores="softmax_of_chosen"), False),
    "softmax, best of groups": (replace(SOFTMAX, num_groups=2, factor=1.5), False),
    "sigmoid": (SIGMOID, False),
    "sigmoid, corrected": (replace(SIGMOID, added_to_sum=0.25), True),
    "sigmoid, groups": (IN_GROUPS, False),
    "sigmoid, groups, corrected": (IN_GROUPS, True),
}


@pytest.mark.parametrize("name", ROUTINGS)
def test_experts_are_chosen_as_the_routing_says(name: str, tmp_path: Path) -> None:
    routing, is_corrected = ROUTINGS[name]
    correction = CORRECTION if is_corrected else None
    logits = np.random.default_rng(3).standard_normal((50, NUM_EXPERTS), np.float32) * 2
    save(tmp_path / SINGLE_FILE, {"router.weight": np.eye(NUM_EXPERTS, dtype=np.float32)})
    b = Builder(CompressedWeights(Checkpoint(tmp_path), MemoryWriter()), read_weights("f32"))
    rows = ops.parameter([-1, NUM_EXPERTS], ov.Type.f32)
    choice = route(b, rows, "router", NUM_EXPERTS, routing, correction=correction)
    model = ov.Model([ops.result(choice.experts), ops.result(choice.weights)], [rows], "router")
    compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": ov.Type.f32})

    experts, weights = compiled(logits).values()

    for row in range(len(logits)):
        expected = weights_of_token(logits[row].astype(np.float64), routing, correction)
        assert set(experts[row].tolist()) == set(expected)
        np.testing.assert_allclose(
            weights[row], [expected[expert] for expert in experts[row].tolist()], rtol=1e-5
        )


def weights_of_token(
    logits: NDArray[np.float64], routing: Routing, correction: NDArray[np.float32] | None
) -> dict[int, float]:
    """Computes the chosen experts of one token and their weights with numpy."""
    shares = np.exp(logits) / np.exp(logits).sum()
    scores = 1 / (1 + np.exp(-logits)) if routing.scores == "sigmoid" else shares
    compared = scores + (0 if correction is None else correction)
    groups = np.split(np.arange(NUM_EXPERTS), routing.num_groups)
    groups.sort(key=lambda group: -np.sort(compared[group])[-routing.num_group_scores :].sum())
    allowed = np.concatenate(groups[: routing.num_chosen_groups])
    chosen = sorted(allowed.tolist(), key=lambda expert: -compared[expert])[: routing.num_chosen]
    total = sum(scores[chosen])
    if routing.scores != "softmax_of_chosen" and not routing.is_normalised:
        total = 1.0
    total = max(total + routing.added_to_sum, routing.smallest_sum)
    return {expert: float(scores[expert]) / total * routing.factor for expert in chosen}


@pytest.mark.parametrize(
    "changes",
    [
        {"num_chosen": 9},
        {"num_groups": 3},
        {"num_groups": 4, "num_chosen_groups": 5},
        {"num_groups": 8},
    ],
)
def test_impossible_routings_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ModelLoadError, match=r"config.json: \d+ experts"):
        replace(SOFTMAX, **changes)  # type: ignore[arg-type]
