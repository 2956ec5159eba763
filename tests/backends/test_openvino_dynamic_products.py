"""Products of dynamically quantised activations become products of the real numbers."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.speaking.dynamic_products import restore_real_products

RANDOM = np.random.default_rng(0)
SCALE = np.float32(0.01)  # scale of the weights
ZERO = 3  # zero point of the weights


def quantise(value: Node) -> tuple[Node, Node, Node]:
    """Returns integers, scale and zero point, as OpenVINO reads ONNX's DynamicQuantizeLinear."""
    axes = ops.constant(np.arange(len(value.get_partial_shape())))
    zero, whole = ops.constant(np.float32(0)), ops.constant(np.float32(255))
    largest = ops.maximum(ops.reduce_max(value, axes), zero)
    least = ops.minimum(ops.reduce_min(value, axes), zero)
    span = ops.subtract(largest, least)
    scale = ops.divide(span, whole)
    shift = ops.round(ops.divide(ops.subtract(zero, least), scale), "half_to_even")
    point = ops.convert(ops.clamp(shift, 0.0, 255.0), "u8")
    rounded = ops.round(ops.divide(ops.multiply(value, whole), span), "half_to_even")
    shifted = ops.add(rounded, ops.convert(point, "f32"))
    return ops.convert(ops.clamp(shifted, 0.0, 255.0), "u8"), scale, point


def make_integers(values: Node, point: Node) -> Node:
    return ops.subtract(ops.convert(values, "i32"), ops.convert(point, "i32"))


def make_graph(
    weights: NDArray[np.int8], *, bias: NDArray[np.float32] | None = None, scales: bool = True
) -> ov.Model:
    """Makes a product, a convolution if the weights have three axes. Without `scales` the result is
    not scaled back.
    """
    is_convolution = weights.ndim == 3
    value = ops.parameter([1, weights.shape[1], -1] if is_convolution else [-1, len(weights)])
    integers, scale, point = quantise(value)
    matrix = make_integers(ops.constant(weights), ops.constant(np.int8(ZERO)))
    both = ops.multiply(scale, ops.constant(SCALE))
    if is_convolution:
        product = ops.convolution(make_integers(integers, point), matrix, [1], [1], [1], [1])
    else:
        product = ops.matmul(make_integers(integers, point), matrix, False, False)
    if bias is not None:
        rounded = ops.convert(ops.floor(ops.divide(ops.constant(bias), both)), "i32")
        column = ops.reshape(rounded, ops.constant(np.array([1, -1, 1])), False)
        product = ops.add(product, column)
    real = ops.convert(product, "f32")
    return ov.Model([ops.multiply(real, both) if scales else real], [value])


def run(graph: ov.Model, value: NDArray[np.float32]) -> NDArray[np.float32]:
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    result: NDArray[np.float32] = compiled([value])[0]
    return result


def test_a_matrix_product_takes_the_real_numbers() -> None:
    weights = RANDOM.integers(-100, 100, (16, 8)).astype(np.int8)
    value = RANDOM.normal(0, 1, (5, 16)).astype(np.float32)
    expected = value @ ((weights.astype(np.float32) - ZERO) * SCALE)
    graph = make_graph(weights)
    rounded = run(graph, value)
    assert np.abs(rounded - expected).max() > 1e-3  # the integers lose some of the value
    assert rounded == pytest.approx(expected, abs=0.2)
    assert restore_real_products(graph) == 1
    assert run(graph, value) == pytest.approx(expected, abs=1e-4)


def test_a_convolution_keeps_its_whole_bias() -> None:
    weights = RANDOM.integers(-100, 100, (4, 6, 3)).astype(np.int8)
    bias = RANDOM.normal(0, 1, 4).astype(np.float32)
    value = RANDOM.normal(0, 1, (1, 6, 9)).astype(np.float32)
    matrix = (weights.astype(np.float32) - ZERO) * SCALE
    padded = np.pad(value, ((0, 0), (0, 0), (1, 1)))
    windows = np.stack([padded[0, :, index : index + 3] for index in range(9)])
    expected = np.einsum("tck,ock->ot", windows, matrix)[None] + bias[None, :, None]
    graph = make_graph(weights, bias=bias)
    assert run(graph, value) == pytest.approx(expected, abs=0.2)
    assert restore_real_products(graph) == 1
    assert run(graph, value) == pytest.approx(expected, abs=1e-4)


def test_products_of_another_form_stay() -> None:
    weights = RANDOM.integers(-100, 100, (16, 8)).astype(np.int8)
    value = RANDOM.normal(0, 1, (5, 16)).astype(np.float32)
    graph = make_graph(weights, scales=False)
    before = run(graph, value)
    assert restore_real_products(graph) == 0
    assert np.array_equal(run(graph, value), before)
