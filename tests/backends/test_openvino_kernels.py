"""Compares families on Ouzel's own kernels with the same matrices multiplied in float32."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino import create_runner, read_config
from ouzel.backends.openvino import load as load_model
from ouzel.backends.openvino.kernels import fusion
from ouzel.backends.openvino.kernels.attention import (
    ATTENTION,
    F16_CACHE,
    PLUGIN_ATTENTION,
    U8_CACHE,
)
from ouzel.backends.openvino.kernels.fusion import copy_fused, fuse_products
from ouzel.backends.openvino.kernels.library import uses_kernels
from ouzel.backends.openvino.kernels.products import (
    EMBEDDING,
    EXPERTS,
    FEED_FORWARD,
    LINEAR,
    find_products,
)
from ouzel.backends.openvino.kernels.program import PROGRAM, keep_row_bits
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.backends.openvino.weights.compress import packed_encoding
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import MatrixSpec
from ouzel.config import EngineConfig, ModelConfig
from tests.backends import GOLDEN_NAMES, of_kinds
from tests.backends.checkpoint_edits import change_config, join_tensors, repeat_tensors
from tests.backends.conftest import Golden, Load, read_golden
from tests.backends.forward import Driver, median_error, relative_error

pytestmark = pytest.mark.skipif(
    not uses_kernels(EngineConfig()), reason="ouzel-kernels cannot run here"
)

WEIGHTS = "int4,head=int4,embedding=int4"
# Rounding activations to int8. Routers of experts may choose another expert by it.
MEDIAN_TOLERANCE, TOLERANCE = 0.12, 0.35
BuildGraph = Callable[[str | Path], ov.Model]
OPERATIONS = (LINEAR, FEED_FORWARD, EMBEDDING)
JOINED = (  # the tensors of llama that phi3 has below each other, and the name of the whole
    ("self_attn", ("q_proj", "k_proj", "v_proj"), "qkv_proj"),
    ("mlp", ("gate_proj", "up_proj"), "gate_up_proj"),
)


@pytest.mark.parametrize(
    "golden", of_kinds("own kernels under other families", GOLDEN_NAMES), indirect=True
)
def test_own_kernels_agree_with_float32(golden: Golden, load: Load) -> None:
    exact_runner = load(golden.directory, WEIGHTS)
    _, exact = Driver(exact_runner).prefill(golden.prompt, len(golden.prompt))
    runner = load(golden.directory, WEIGHTS, "auto", "f16")
    _, whole = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    _, in_chunks = Driver(runner).prefill(golden.prompt, 3)
    assert runner.info.kernels and not exact_runner.info.kernels
    for logits in (whole, in_chunks):
        assert median_error(logits, exact) < MEDIAN_TOLERANCE
        assert relative_error(logits, exact) < TOLERANCE


@pytest.fixture
def build_graph(tmp_path: Path) -> BuildGraph:
    """Returns a function that builds the graph of a golden checkpoint, or of a directory.

    The arrays of the constants stay until the test ends.
    """
    models: list[LanguageModel] = []

    def build(name: str | Path) -> ov.Model:
        directory = name if isinstance(name, Path) else read_golden(name).directory
        model = ModelConfig(model=str(directory), weights=WEIGHTS, cache_dir=str(tmp_path))
        config = read_config(directory)
        models.append(load_model(ov.Core(), directory, config, model, packs=True))
        return models[-1].graph

    return build


def count_operations(graph: ov.Model) -> Counter[str]:
    fused = graph.clone()
    fuse_products(fused)
    return Counter(name for node in fused.get_ops() if (name := node.get_type_name()) in OPERATIONS)


def count_layers(name: str) -> int:
    config = read_config(read_golden(name).directory)
    return config.text_model().size("num_hidden_layers")


# The heads of these checkpoints are too small for the kernels, so that `write_whole` joins two.
ONE_HEAD = ("olmo2", "olmo3", "exaone4")
SMALL_HEADS = (*ONE_HEAD, "smollm3")
NORMS_AFTER = ("gemma3", "olmo2", "olmo3", "glm4", "exaone4")


@pytest.mark.parametrize("name", ["llama-bias", "qwen3", "granite", "minicpm", *NORMS_AFTER])
def test_a_layer_has_two_operations(name: str, build_graph: BuildGraph) -> None:
    """Beside them there are the embedding and the head with its norm."""
    found = count_operations(build_graph(name))
    layers = count_layers(name)
    assert found == {LINEAR: layers + 1, FEED_FORWARD: layers, EMBEDDING: 1}


@pytest.mark.parametrize("name", NORMS_AFTER)
def test_norms_after_products_are_part_of_the_operations(
    name: str, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number near the middle of two int8 may be rounded to either of them."""
    golden = read_golden(name)
    _, joined = Driver(load(golden.directory, WEIGHTS, "auto", "f16")).prefill(golden.prompt, 5)
    monkeypatch.setattr(fusion, "fuse_products", lambda graph: None)
    _, alone = Driver(load(golden.directory, WEIGHTS, "int8", "f16")).prefill(golden.prompt, 5)
    assert relative_error(joined, alone) < 0.01


def write_joined(name: str, directory: Path, **changes: object) -> Path:
    """Writes a checkpoint of llama as one of phi3, which joins tensors of the same columns.

    `changes` are further values of config.json.
    """
    shutil.copytree(read_golden(name).directory, directory)
    change_config(directory, model_type="phi3", architectures=["Phi3ForCausalLM"], **changes)
    for layer in range(count_layers(name)):
        for part, names, joined in JOINED:
            prefix = f"model.layers.{layer}.{part}."
            together = [f"{prefix}{each}.weight" for each in names]
            join_tensors(directory / "model.safetensors", together, f"{prefix}{joined}.weight")
    return directory


def test_matrices_of_one_tensor_are_multiplied_like_separate_ones(
    load: Load, build_graph: BuildGraph, tmp_path: Path
) -> None:
    golden = read_golden("llama")
    _, separate = Driver(load(golden.directory, WEIGHTS, "auto", "f16")).prefill(golden.prompt, 5)
    directory = write_joined("llama", tmp_path / "model")
    _, joined = Driver(load(directory, WEIGHTS, "auto", "f16")).prefill(golden.prompt, 5)
    assert np.array_equal(separate, joined)
    found = count_operations(build_graph(directory))
    assert found[FEED_FORWARD] == count_layers("llama")


def test_a_part_of_each_head_of_joined_matrices_is_turned(
    load: Load, build_graph: BuildGraph, tmp_path: Path
) -> None:
    """Phi-4-mini turns 96 of the 128 channels of a head; this model turns 24 of 32."""
    golden = read_golden("mistral")
    directory = write_joined("mistral", tmp_path / "model", partial_rotary_factor=0.75)
    _, exact = Driver(load(directory, WEIGHTS)).prefill(golden.prompt, len(golden.prompt))
    _, found = Driver(load(directory, WEIGHTS, "auto", "f16")).prefill(golden.prompt, 5)
    _, whole = Driver(load(golden.directory, WEIGHTS)).prefill(golden.prompt, len(golden.prompt))
    assert relative_error(found, exact) < MEDIAN_TOLERANCE < relative_error(whole, exact)
    fused = copy_fused(build_graph(directory), cache_type=F16_CACHE, may_be_wide=False)
    assert keep_row_bits([fused], may_be_wide=False)


@pytest.mark.parametrize("name", ["mixtral", "gpt-oss"])
def test_the_experts_of_a_layer_are_one_operation(name: str, build_graph: BuildGraph) -> None:
    graph = build_graph(name)
    kinds = Counter(node.get_type_name() for node in graph.get_ops())
    assert kinds[EXPERTS] == count_layers(name)
    assert kinds["VariadicSplit"] == kinds["GroupedMatMul"] == 0
    fused = graph.clone()
    fuse_products(fused)
    mixtures = [node for node in fused.get_ops() if node.get_type_name() == EXPERTS]
    assert all(node.get_attributes()["has_residual"] for node in mixtures)


def test_experts_of_which_one_matrix_is_packed(
    load: Load, monkeypatch: pytest.MonkeyPatch, build_graph: BuildGraph, tmp_path: Path
) -> None:
    """Such matrices are multiplied one by one."""
    golden = read_golden("mixtral")
    _, exact = Driver(load(golden.directory, WEIGHTS)).prefill(golden.prompt, len(golden.prompt))

    def pack_all_but_down(spec: MatrixSpec, encoding: Encoding) -> Encoding:
        return encoding if "w2" in spec.key else packed_encoding(spec, encoding)

    monkeypatch.setattr(
        "ouzel.backends.openvino.weights.compress.packed_encoding", pack_all_but_down
    )
    graph = build_graph("mixtral")
    kinds = Counter(node.get_type_name() for node in graph.get_ops())
    assert not kinds[EXPERTS] and kinds["VariadicSplit"]
    model = ModelConfig(model=str(golden.directory), weights=WEIGHTS, cache_dir=str(tmp_path))
    runner = create_runner(model, EngineConfig(kv_cache_dtype="f16", kv_cache_gib=0.02))
    assert isinstance(runner, OpenVINORunner)
    _, found = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    runner.close()
    assert relative_error(found, exact) < TOLERANCE


@pytest.mark.parametrize("name", ["qwen3", "gpt-oss", "granitemoehybrid", "gemma4-shared"])
def test_no_product_is_lost(name: str, build_graph: BuildGraph) -> None:
    graph = build_graph(name)
    before = sum(len(node.get_attributes()["outputs"]) for node in find_products(graph))
    fused = graph.clone()
    fuse_products(fused)
    after = sum(len(node.get_attributes()["outputs"]) for node in find_products(fused))
    assert before == after > 0


def test_the_graph_of_the_model_stays_as_it_is(build_graph: BuildGraph) -> None:
    graph = build_graph("qwen3")
    before = Counter(node.get_type_name() for node in graph.get_ops())
    count_operations(graph)
    assert Counter(node.get_type_name() for node in graph.get_ops()) == before


@pytest.mark.parametrize("cache_type", [F16_CACHE, U8_CACHE, None])
def test_operations_that_follow_each_other_are_one_program(
    cache_type: ov.Type | None, build_graph: BuildGraph
) -> None:
    """The runtime gathers the sampled rows after the last attention, so that there are two.

    Without the kernels' attention each attention ends a program.
    """
    fused = copy_fused(build_graph("qwen3"), cache_type=cache_type, may_be_wide=True)
    found = Counter(node.get_type_name() for node in fused.get_ops())
    num_layers, attends = count_layers("qwen3"), cache_type is not None
    assert found[PROGRAM] == (2 if attends else 1 + num_layers)
    assert found[PLUGIN_ATTENTION] == (0 if attends else num_layers)
    assert not any(found[name] for name in (*OPERATIONS, ATTENTION))


def test_both_attentions_write_the_same_keys_and_values(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = read_golden("qwen3")
    runners = [load(golden.directory, WEIGHTS, "auto", "f16")]
    monkeypatch.setattr("ouzel.backends.openvino.can_attend", lambda *_: False)
    runners.append(load(golden.directory, WEIGHTS, "int8", "f16"))
    keys, largest = [], []
    for runner in runners:
        assert isinstance(runner, OpenVINORunner) and runner.info.kv_cache_dtype == "f16"
        driver = Driver(runner)
        driver.step([(driver.sequence(), golden.prompt)])
        keys.append(runner.read_keys(len(golden.prompt)))
        largest.append(runner.largest_cached(len(golden.prompt)))
    for name, own in keys[0].items():
        assert relative_error(own, keys[1][name]) < 0.01
    assert largest[0] == pytest.approx(largest[1], rel=0.01)


WHOLE = ("qwen3", "gemma3", "glm", "glm4", *SMALL_HEADS)


@pytest.mark.parametrize("name", WHOLE)
def test_the_kernels_compute_everything(name: str, build_graph: BuildGraph, tmp_path: Path) -> None:
    directory = write_whole(name, tmp_path / "model")
    graph = copy_fused(build_graph(directory), cache_type=F16_CACHE, may_be_wide=False)
    assert keep_row_bits([graph], may_be_wide=False)


@pytest.mark.parametrize("name", ["glm4", *SMALL_HEADS])
def test_heads_are_normalised_and_turned_like_in_the_graph(
    name: str, load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prompt, directory = read_golden(name).prompt, write_whole(name, tmp_path / "model")
    _, joined = Driver(load(directory, WEIGHTS, "auto", "f16")).prefill(prompt, 5)
    monkeypatch.setattr(fusion, "fuse_products", lambda graph: None)
    _, alone = Driver(load(directory, WEIGHTS, "int8", "f16")).prefill(prompt, 5)
    assert relative_error(joined, alone) < 0.01


def write_whole(name: str, directory: Path) -> Path:
    """Writes a checkpoint that the kernels compute wholly.

    Its logits have no soft cap. Two heads that are too small become one; the only head of keys is
    repeated.
    """
    shutil.copytree(read_golden(name).directory, directory)
    change_config(directory, final_logit_softcapping=None)
    if name == "smollm3":
        change_config(directory, num_attention_heads=2, num_key_value_heads=1)
    if name in ONE_HEAD:
        change_config(directory, num_attention_heads=1, num_key_value_heads=1)
        pattern = "_norm" if name == "exaone4" else "k_norm"
        repeat_tensors(directory / "model.safetensors", (pattern, "k_proj", "v_proj"))
    return directory


@pytest.mark.parametrize("name", WHOLE)
def test_a_row_has_the_same_bits_alone_and_among_others(
    name: str, load: Load, tmp_path: Path
) -> None:
    golden = read_golden(name)
    runner = load(write_whole(name, tmp_path / "model"), WEIGHTS, "auto", "f16")
    driver = Driver(runner)
    prompts = [golden.prompt[: 2 + index] for index in range(7)]
    alone = []
    for prompt in prompts:
        sequence = driver.sequence()
        alone.append([driver.step([(sequence, prompt)])[0], driver.step([(sequence, [5])])[0]])
    driver = Driver(runner)
    sequences = [driver.sequence() for _ in prompts]
    first = driver.step(list(zip(sequences, prompts, strict=True)))
    second = driver.step([(sequence, [5]) for sequence in sequences])
    for row in range(len(prompts)):
        assert np.array_equal(first[row], alone[row][0])
        assert np.array_equal(second[row], alone[row][1])
