"""Ouzel passes properties to OpenVINO that depend on the weights, the options and the CPU."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ouzel.backends.openvino import load, read_config
from ouzel.backends.openvino.compilation import (
    check_options,
    compile_graphs,
    compile_properties,
    fuse_graphs,
)
from ouzel.backends.openvino.inspection import make_smallest_graph
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.config import EngineConfig, ModelConfig, Precision
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.release_only import release_only

LIMIT = "ONEDNN_MAX_CPU_ISA"
GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"


@pytest.fixture(autouse=True, scope="module")
def _onednn_has_read_its_limit() -> None:
    """Lets oneDNN read the variable LIMIT now: it reads it once in the life of a process.

    A test that sets the variable first would limit all later tests of the process.
    """
    ov.Core().compile_model(make_smallest_graph(), "CPU")


def make_model(*shapes: list[int], dtype: str = "i4", hidden_size: int = 1024) -> LanguageModel:
    """Builds a model whose graph has compressed matrices of these shapes."""
    matrices = [ops.parameter(shape, getattr(ov.Type, dtype)) for shape in shapes]
    constants = [ops.constant(ov.Tensor(getattr(ov.Type, dtype), shape)) for shape in shapes]
    results = [ops.result(ops.convert(constant, "f32")) for constant in constants]
    graph = ov.Model(results, matrices, "compressed")
    return LanguageModel(
        graph=graph, arrays=[], ropes={}, hidden_size=hidden_size, vocab_size=8, max_positions=8
    )


@pytest.mark.parametrize("precision", ["auto", "int8"])
def test_groups_of_activations_fit_into_those_of_weights(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    engine = EngineConfig(precision=precision)
    assert compile_properties(engine, make_model([8, 1024], dtype="u8"))[GROUP_SIZE] == 64
    assert compile_properties(engine, make_model([8, 8, 128]))[GROUP_SIZE] == 64
    assert compile_properties(engine, make_model([8, 8, 128], [4, 8, 32, 32]))[GROUP_SIZE] == 32
    with_zero_points = make_model([8, 8, 128], [8, 8, 1], dtype="u8")
    assert compile_properties(engine, with_zero_points)[GROUP_SIZE] == 64
    assert compile_properties(engine, make_model([8, 32, 32], dtype="i8"))[GROUP_SIZE] == 32
    assert (
        compile_properties(engine, make_model([8, 32], dtype="u8", hidden_size=32))[GROUP_SIZE]
        == 32
    )
    assert compile_properties(engine, make_model([8, 64, 16]))[GROUP_SIZE] == 0


def test_f32_rounds_no_activations() -> None:
    properties = compile_properties(
        EngineConfig(precision="f32"), make_model([8, 1024], dtype="u8")
    )
    assert properties[GROUP_SIZE] == 0
    assert properties["INFERENCE_PRECISION_HINT"] == ov.Type.f32


@pytest.mark.parametrize(
    ("largest", "hint", "group_size"),
    [
        ("AVX2", ov.Type.f32, 0),
        ("avx512_core", ov.Type.f32, 64),
        ("AVX512_CORE_BF16", None, 64),
        ("ALL", None, 64),
    ],
)
def test_precisions_respect_the_instruction_set_of_onednn(
    largest: str, hint: ov.Type | None, group_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, largest)
    properties = compile_properties(EngineConfig(), make_model([8, 1024], dtype="u8"))
    assert (properties.get("INFERENCE_PRECISION_HINT"), properties[GROUP_SIZE]) == (
        hint,
        group_size,
    )


def test_bf16_is_refused_if_onednn_may_not_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(LIMIT, "AVX2")
    with pytest.raises(
        ModelLoadError, match="precision bf16 is not available on CPU; use auto or f32"
    ):
        check_options(ov.Core(), EngineConfig(precision="bf16"))


@pytest.mark.release("instruction sets of oneDNN")
@pytest.mark.parametrize("largest", ["AVX2", "AVX512_CORE", "ALL"])
def test_a_model_loads_with_each_instruction_set_of_onednn(largest: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ouzel.backends.openvino import create_runner\n"
        "from ouzel.config import EngineConfig, ModelConfig\n"
        "model = ModelConfig(model=sys.argv[1], cache_dir=sys.argv[2])\n"
        "sys.stdout.write(create_runner(model, EngineConfig(kv_cache_gib=0.02)).info.weights)\n"
    )
    command = [sys.executable, "-c", program, str(GOLDEN / "qwen3"), str(tmp_path)]
    environment = dict(os.environ) | {LIMIT: largest}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "int8"), done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "granite",
        "minicpm3",
        "gemma4-shared",
        *release_only(
            "factors behind products of further models", "minicpm", "cohere2", "granitemoehybrid"
        ),
    ],
)
def test_factors_behind_products_leave_the_weights_in_integers(name: str, tmp_path: Path) -> None:
    """Otherwise OpenVINO multiplies the weights by such factors, and the weights become f32."""
    core, directory = ov.Core(), GOLDEN / name
    model = ModelConfig(model=str(directory), weights="int8", cache_dir=str(tmp_path))
    loaded = load(core, directory, read_config(directory), model)
    engine = EngineConfig(precision="int8")
    compiled, *_ = compile_graphs(core, fuse_graphs(core, loaded, engine), loaded, engine)
    nodes = [
        node
        for node in compiled.get_runtime_model().get_ops()
        if read_layer_type(node) == "FullyConnected"
    ]
    types = Counter(
        node.input_value(1).get_node().get_rt_info()["outputPrecisions"].astype(str)
        for node in nodes
    )
    assert types["u8"] >= 8
    assert not types["f32"]


def read_layer_type(node: ov.Node) -> str:
    return str(node.get_rt_info()["layerType"].astype(str))
