"""Makes the operations that multiply by packed matrices, and the rows of such matrices.

kernels/src/operations.cpp implements them and describes their inputs and attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, get_output
from ouzel.backends.openvino.kernels.gates import Gate
from ouzel.backends.openvino.kernels.library import make_operation
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.cells import find_table, num_scales
from ouzel.backends.openvino.weights.source import Matrix

LINEAR = "OuzelLinear"
FEED_FORWARD = "OuzelFeedForward"
EMBEDDING = "OuzelEmbedding"
EXPERTS = "OuzelExperts"

_PRODUCTS = (LINEAR, FEED_FORWARD, EXPERTS)
_ATTRIBUTES = (
    "outputs",
    "inputs",
    "bits",
    "scales",
    "has_offsets",
    "tables",
    "has_bias",
)  # one number a matrix


@dataclass(frozen=True, slots=True)
class PackedArrays:
    """A matrix as inputs of an operation: cells, factors, and the bias if there is one."""

    inputs: tuple[Node, ...]
    attributes: tuple[int, ...]  # one for each name of _ATTRIBUTES

    @property
    def scales(self) -> int:
        return self.attributes[_ATTRIBUTES.index("scales")]


@dataclass(frozen=True, slots=True)
class RowNorm:
    """An RMS norm of rows or of heads."""

    weight: Node  # f32 [columns]
    epsilon: float


@dataclass(frozen=True, slots=True)
class Turning:
    """The rotation of the first dimensions of each head."""

    num_dims: int
    cos: Node  # f32 [rows, num_dims / 2]
    sin: Node


@dataclass(frozen=True, slots=True)
class TurnedHeads:
    """The heads of the first products of a linear, which are normalised or turned."""

    size: int
    turning: Turning | None
    norms: tuple[RowNorm, ...]  # one for each of these products; empty: no norms
    num_products: int


@dataclass(frozen=True, slots=True)
class HalfNorms:
    """The norms of the feed-forward half of a layer; None: there is no norm."""

    projected: RowNorm | None  # after the projection
    before: RowNorm | None  # before gate and up
    result: RowNorm | None  # after down


def describe_arrays(matrix: Matrix, cells: Node, factors: Node, bias: Node | None) -> PackedArrays:
    """Describes a packed matrix whose arrays are these nodes."""
    num_rows, num_columns = matrix.shape
    encoding = matrix.encoding
    inputs = (cells, factors) if bias is None else (cells, factors, bias)
    return PackedArrays(
        inputs,
        (
            num_rows,
            num_columns,
            encoding.value_bits,
            num_scales(encoding),
            encoding.zeros is not None,
            find_table(encoding),
            bias is not None,
        ),
    )


def make_linear(
    rows: Node,
    matrices: Sequence[PackedArrays],
    *,
    norm: RowNorm | None = None,
    residual: Node | None = None,
    heads: TurnedHeads | None = None,
    result_norms: Sequence[RowNorm] = (),
) -> Node:
    """Multiplies rows f32 [..., columns] by the transposes of the matrices: an output for each.

    The rows are normalised first. The first products are normalised by `result_norms`, which have
    one epsilon, the residual is added to the first product, and the heads are turned at the end.
    """
    inputs = [rows]
    inputs += [] if norm is None else [norm.weight]
    inputs += [] if residual is None else [residual]
    attributes: dict[str, object] = {
        "epsilon": _read_epsilon(norm),
        "has_residual": residual is not None,
    }
    if heads is not None:
        turning = heads.turning
        inputs += [] if turning is None else [turning.cos, turning.sin]
        inputs += [each.weight for each in heads.norms]
        attributes |= {
            "head_size": heads.size,
            "turned_size": 0 if turning is None else turning.num_dims,
            "num_turned": heads.num_products,
            "head_epsilon": _read_epsilon(*heads.norms[:1]),
        }
    inputs += [each.weight for each in result_norms]
    attributes |= {
        "num_normed": len(result_norms),
        "result_epsilon": _read_epsilon(*result_norms[:1]),
    }
    return _make(LINEAR, inputs, matrices, attributes)


def make_feed_forward(
    rows: Sequence[Node], norms: HalfNorms, matrices: Sequence[PackedArrays], gate: Gate
) -> Node:
    """Makes the feed-forward half of a layer, with the norms around it and the sum after it.

    `rows` are the rows x; or rows and a residual, of which the first of four matrices makes x.
    """
    assert gate.is_plain, "the operation cuts no gates"
    attributes: dict[str, object] = {
        "projected_epsilon": _read_epsilon(norms.projected),
        "epsilon": _read_epsilon(norms.before),
        "result_epsilon": _read_epsilon(norms.result),
        "linear": gate.linear,
        "cubic": gate.cubic,
    }
    in_order = (norms.projected, norms.before, norms.result)
    weights = [norm.weight for norm in in_order if norm is not None]
    return _make(FEED_FORWARD, [*rows, *weights], matrices, attributes)


@dataclass(frozen=True, slots=True)
class ExpertArrays:
    """The matrices of all experts, one below the other."""

    num_experts: int
    gate_up: PackedArrays  # [experts * 2 * inner size, columns]; up stands below gate
    down: PackedArrays  # [experts * columns, inner size]
    gate: Gate


def make_mixture(rows: Node, chosen: Node, weights: Node, experts: ExpertArrays) -> Node:
    """Adds the results of the experts of each row, times their weights.

    The rows are f32 [..., columns], `chosen` i32 and `weights` f32 [..., experts of a row].
    """
    attributes: dict[str, object] = {
        "experts": experts.num_experts,
        "has_residual": False,
        **experts.gate.attributes,
    }
    inputs = [rows, chosen, weights]
    return _make(EXPERTS, inputs, [experts.gate_up, experts.down], attributes)


def add_residual(mixture: Node, residual: Node) -> Node:
    """Returns the same mixture, which also adds the residual, f32 [..., columns]."""
    values = mixture.input_values()
    inputs = [*values[:3], residual, *values[3:]]
    return make_operation(EXPERTS, inputs, mixture.get_attributes() | {"has_residual": True})


def make_embedding(numbers: Node, matrix: PackedArrays) -> Node:
    """Returns f32 [..., columns], the rows of the matrix with these numbers, i32 or i64 [...]."""
    return _make(EMBEDDING, [numbers], [matrix], {})


def find_products(graph: ov.Model) -> list[Node]:
    """Returns the operations that multiply by packed matrices."""
    return [node for node in graph.get_ops() if node.get_type_name() in _PRODUCTS]


def find_cells(product: Node) -> list[Node]:
    """Returns the cells of the matrices of an operation; all its other arrays are floats."""
    return [value for value in product.input_values() if value.get_element_type() == ov.Type.u8]


def forbid_wide_rows(graph: ov.Model) -> None:
    """Makes the bits of a row independent of the number of rows: none is multiplied in bf16."""
    for product in find_products(graph):
        product.set_attribute("may_be_wide", False)


def linear_arrays(linear: Node) -> PackedArrays:
    """Returns the matrix of a linear that has one matrix, and no norms, residual or heads."""
    attributes = linear.get_attributes()
    return PackedArrays(
        tuple(linear.input_values()[1:]), tuple(int(attributes[name][0]) for name in _ATTRIBUTES)
    )


def replace_rows(linear: Node, rows: Node) -> Node:
    """Returns a product like `linear`, which has one matrix, of other rows."""
    return make_linear(rows, [linear_arrays(linear)])


def scale_product(product: Node, factors: NDArray[np.float32]) -> None:
    """Multiplies the results of a linear or an embedding with one matrix, and nothing else.

    `factors` is one number, or has one for each row of the matrix. Changes the graph in place.
    """
    for index in range(2, product.get_input_size()):  # factors, and the bias
        values = product.input_value(index).get_node().get_data() * factors
        constant = ops.constant(values.astype(np.float32))
        product.input(index).replace_source_output(constant.output(0))


def _read_epsilon(norm: RowNorm | None = None) -> float:
    return -1.0 if norm is None else norm.epsilon


def _make(
    name: str,
    inputs: Sequence[Node],
    matrices: Sequence[PackedArrays],
    attributes: dict[str, object],
) -> Node:
    of_matrices = {
        name: [matrix.attributes[index] for matrix in matrices]
        for index, name in enumerate(_ATTRIBUTES)
    }
    arrays = [each for matrix in matrices for each in matrix.inputs]
    values = [get_output(each) for each in (*inputs, *arrays)]
    return make_operation(name, values, of_matrices | attributes)
