"""Makes the operations that multiply by packed matrices, and the rows of such matrices.

kernels/src/operations.cpp implements them.
"""

from ouzel.backends.openvino.graph.nodes import Node, get_output
from ouzel.backends.openvino.kernels.library import Kernels, find_kernels
from ouzel.backends.openvino.weights.cells import num_scales
from ouzel.backends.openvino.weights.source import Matrix

LINEAR = "OuzelLinear"
EMBEDDING = "OuzelEmbedding"
FACTORS_INPUT = 2  # of an OuzelLinear; the bias follows, if there is one


def make_linear(rows: Node, matrix: Matrix, cells: Node, factors: Node, bias: Node | None) -> Node:
    """Multiplies rows f32 [..., columns] by the transpose of the matrix, and adds the bias."""
    inputs = [rows, cells, factors] if bias is None else [rows, cells, factors, bias]
    return _make(LINEAR, inputs, _attributes(matrix) | {"may_be_wide": True})


def make_embedding(numbers: Node, matrix: Matrix, cells: Node, factors: Node) -> Node:
    """Returns f32 [..., columns], the rows of the matrix with these numbers, i32 or i64 [...]."""
    return _make(EMBEDDING, [numbers, cells, factors], _attributes(matrix))


def replace_rows(linear: Node, rows: Node) -> Node:
    """Returns a product like `linear` of other rows."""
    values = linear.input_values()
    return _make(LINEAR, [rows, *values[1:]], linear.get_attributes())


def _attributes(matrix: Matrix) -> dict[str, object]:
    num_rows, num_columns = matrix.shape
    return {
        "outputs": num_rows,
        "inputs": num_columns,
        "scales": num_scales(matrix.encoding),
        "has_offsets": matrix.encoding.zeros is not None,
    }


def _make(name: str, inputs: list[Node], attributes: dict[str, object]) -> Node:
    kernels = find_kernels()
    assert isinstance(kernels, Kernels), "matrices are packed only for kernels that were found"
    return kernels.factory.create(name, [get_output(each) for each in inputs], attributes)
