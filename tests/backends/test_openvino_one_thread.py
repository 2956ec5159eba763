"""Compiles gated feed-forward layers for one thread.

OpenVINO could end the process on a CPU with AMX, so each test loads its model in another process.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.one_thread import gate_products, keep_gates_apart, num_threads_on_cpu

IRS = Path(__file__).parent / "optimum_ir_vision"
HIDDEN, INNER = 64, 128  # multiples of 32, for the plugin's own operation
SERVE = """
import sys
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
engine = EngineConfig(kv_cache_gib=0.02, num_threads=int(sys.argv[2]))
sys.stdout.write(create_runner(ModelConfig(model=sys.argv[1]), engine).info.backend)
"""


@pytest.mark.release("matrices compiled for one thread")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("name", ["llava-fp32", "qwen2_5_vl-fp32"])
def test_float_matrices_are_compiled_for_one_thread(name: str, num_threads: int) -> None:
    command = [sys.executable, "-c", SERVE, str(IRS / name), str(num_threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "openvino"), done.stderr


def make_matrix(rows: int, columns: int) -> Node:
    return ops.constant(
        np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    )


def multiply_by(rows: Node, constant: Node) -> Node:
    return ops.matmul(rows, constant, transpose_a=False, transpose_b=True)


def silu(rows: Node) -> Node:
    return ops.multiply(rows, ops.sigmoid(rows))


def tanh_gelu(rows: Node) -> Node:
    return ops.gelu(rows, "tanh")


def build_gated_layer(
    rank: int = 3, *, activate: object = tanh_gelu, is_fused: bool = False
) -> ov.Model:
    assert callable(activate)
    rows = ops.parameter([-1] * (rank - 1) + [HIDDEN], ov.Type.f32)
    if is_fused:
        gate, up = ops.split(
            multiply_by(rows, make_matrix(2 * INNER, HIDDEN)), ops.constant(np.int64(-1)), 2
        ).outputs()
    else:
        gate, up = (
            multiply_by(rows, make_matrix(INNER, HIDDEN)),
            multiply_by(rows, make_matrix(INNER, HIDDEN)),
        )
    product = ops.multiply(activate(gate), up)
    return ov.Model([ops.result(multiply_by(product, make_matrix(HIDDEN, INNER)))], [rows], "gated")


def list_broadcasts(graph: ov.Model) -> list[str]:
    products = (node for node in graph.get_ops() if node.get_type_name() == "Multiply")
    return [product.get_attributes()["auto_broadcast"] for product in products]


def compute(graph: ov.Model) -> NDArray[np.float32]:
    rows = np.random.default_rng(7).standard_normal((5, 1, HIDDEN)).astype(np.float32)
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    rows_out: NDArray[np.float32] = compiled(rows)[0]
    return rows_out


@pytest.mark.parametrize(
    "graph",
    [build_gated_layer(), build_gated_layer(activate=ops.swish), build_gated_layer(is_fused=True)],
    ids=["gelu", "swish", "fused"],
)
def test_a_product_that_may_not_broadcast_computes_the_same(graph: ov.Model) -> None:
    expected = compute(graph.clone())
    keep_gates_apart(ov.Core(), graph, {"INFERENCE_NUM_THREADS": 1})
    assert list_broadcasts(graph) == ["none"]
    np.testing.assert_array_equal(compute(graph), expected)


def test_an_activation_that_is_a_product_does_not_change() -> None:
    graph = build_gated_layer(activate=silu)
    keep_gates_apart(ov.Core(), graph, {"INFERENCE_NUM_THREADS": 1})
    assert sorted(list_broadcasts(graph)) == ["none", "numpy"]


def test_several_threads_do_not_change_the_graph() -> None:
    core, graph = ov.Core(), build_gated_layer()
    properties: dict[str, object] = {"INFERENCE_NUM_THREADS": 2}
    if num_threads_on_cpu(core, properties) == 1:
        pytest.skip("OpenVINO sees one core here")
    keep_gates_apart(core, graph, properties)
    assert list_broadcasts(graph) == ["numpy"]


def test_other_products_are_no_products_of_gates() -> None:
    rows = ops.parameter([-1, 1, HIDDEN], ov.Type.f32)
    scaled = ops.multiply(
        multiply_by(rows, make_matrix(INNER, HIDDEN)), ops.constant(np.float32(2))
    )
    others = ops.parameter([-1, 1, HIDDEN], ov.Type.f32)
    of_two = ops.multiply(
        multiply_by(rows, make_matrix(INNER, HIDDEN)),
        multiply_by(others, make_matrix(INNER, HIDDEN)),
    )
    results = [
        ops.result(multiply_by(each, make_matrix(HIDDEN, INNER))) for each in (scaled, of_two)
    ]
    assert list(gate_products(ov.Model(results, [rows, others], "others"))) == []
    assert list(gate_products(build_gated_layer(rank=2))) == []


def test_a_product_that_broadcasts_is_no_product_of_gates() -> None:
    """A Kokoro model multiplies sines by one number for each row, made of the same rows."""
    rows = ops.parameter([-1, -1, HIDDEN], ov.Type.f32)
    mask = ops.sigmoid(multiply_by(rows, make_matrix(1, HIDDEN)))
    product = ops.multiply(ops.sin(multiply_by(rows, make_matrix(INNER, HIDDEN))), mask)
    result = ops.result(multiply_by(product, make_matrix(HIDDEN, INNER)))
    graph = ov.Model([result], [rows], "masked")
    expected = compute(graph.clone())
    keep_gates_apart(ov.Core(), graph, {"INFERENCE_NUM_THREADS": 1})
    assert list_broadcasts(graph) == ["numpy"]
    np.testing.assert_array_equal(compute(graph), expected)
