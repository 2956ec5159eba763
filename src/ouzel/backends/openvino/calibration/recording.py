"""Records the input rows of each matrix product while the model reads a text.

The graph tells which matrices share an input: each MatMul by a constant is one product, and the
constant points into the array of its matrix. The inputs become further outputs of the graph. Their
rows are stored in a temporary file in bf16, because the second moments of all inputs of a model
would take more memory than the model.

Layers add the products of some matrices to the sum that runs through the model (the residual
stream). An error in such a product matters by its size relative to the sum, and a few tokens have
sums a hundred times as large as others. So the input rows of these matrices are divided by the norm
of the sum at their token.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.checks.lone_sequence import lone_batch
from ouzel.backends.openvino.graph.nodes import Node, find_constant
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.backends.openvino.weights.encodings import encode_bf16
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Weights
from ouzel.config.weights import WidthOption
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

CHUNK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class CalibrationText:
    start: tuple[int, ...]  # tokens at the beginning of each prompt of the model
    token_ids: Sequence[int]

    def chunks(self, max_tokens: int) -> list[NDArray[np.int64]]:
        """Cuts the text into sequences that the model reads one by one.

        `max_tokens` is the model's own limit.
        """
        num_tokens = min(CHUNK_TOKENS, max_tokens)
        start = self.start[: num_tokens - 1]
        step = num_tokens - len(start)
        return [
            np.array([*start, *self.token_ids[at : at + step]], np.int64)
            for at in range(0, len(self.token_ids), step)
        ]


class TracedWeights:
    """Implements `Weights`, and stores the address of each matrix."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.specs: dict[int, MatrixSpec] = {}  # the matrices by the address of their values

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        matrix = self._weights.matrix(spec, width)
        self.specs[matrix.parts["values"].ctypes.data] = spec
        return matrix

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return self._weights.array(name, shape)

    def has(self, name: str) -> bool:
        return self._weights.has(name)


@dataclass(frozen=True, slots=True)
class RecordedInput:
    columns: int
    offset: int  # position in the file, in bytes
    is_divided: bool  # divided by the norm of the sum that the product is added to
    squares: NDArray[np.float64]  # [columns], sums over all rows


class Recording:
    """The recorded input rows of matrices, by the key of the matrix."""

    def __init__(self, path: Path, num_rows: int, inputs: Mapping[str, RecordedInput]) -> None:
        self._path = path
        self._num_rows = num_rows
        self._inputs = inputs

    def has(self, key: str) -> bool:
        return key in self._inputs

    def input_id(self, key: str) -> int:
        """Returns the id of a matrix's input; matrices with the same input have the same id."""
        return self._inputs[key].offset

    def is_divided(self, key: str) -> bool:
        """Tells whether the rows were divided by the norm of the sum that their products are added
        to.
        """
        return self._inputs[key].is_divided

    def mean_squares(self, key: str) -> NDArray[np.float32]:
        """Returns the means over all rows, [columns]: the diagonal of H divided by the number of
        rows.
        """
        return (self._inputs[key].squares / self._num_rows).astype(np.float32)

    def moments(self, key: str, some: slice) -> NDArray[np.float32]:
        """Returns the sum of x x' over all rows x, for some of the columns: a square block of H."""
        found = self._inputs[key]
        shape = (self._num_rows, found.columns)
        rows = np.memmap(self._path, np.uint16, "r", found.offset, shape)
        widened = rows[:, some].astype(np.uint32)
        floats = np.left_shift(widened, np.uint32(16), out=widened).view(np.float32)
        moments: NDArray[np.float32] = floats.T @ floats
        return moments


@dataclass(frozen=True, slots=True)
class ProductInput:
    """An input of matrix products in a graph."""

    rows: Node  # an output of an operation
    keys: tuple[str, ...]  # keys of the matrices that the input is multiplied by
    total: Node | None  # the sum that includes the product; None if the product is not added

    @property
    def columns(self) -> int:
        return int(self.rows.get_partial_shape()[-1].get_length())


def find_product_inputs(graph: ov.Model, specs: Mapping[int, MatrixSpec]) -> list[ProductInput]:
    """Returns each distinct input of products by whole matrices; slices of experts are left out."""
    found: dict[tuple[str, int], ProductInput] = {}
    for node in graph.get_ops():
        if node.get_type_name() != "MatMul":
            continue
        address = _address_of_constant(node.input_value(1))
        if address is not None and address in specs and len(specs[address].shape) == 2:
            rows = node.input_value(0)
            place = (rows.get_node().get_name(), rows.get_index())
            key = specs[address].key
            if place in found:
                found[place] = ProductInput(rows, (*found[place].keys, key), None)
            else:
                found[place] = ProductInput(rows, (key,), _sum_with(node.output(0)))
    return list(found.values())


def _sum_with(product: Node) -> Node | None:
    """Returns the sum of a product and other numbers that the model computes.

    Returns None if the product is not added to such numbers directly.
    """
    while True:
        users = list(product.get_target_inputs())
        if len(users) != 1 or users[0].get_node().get_type_name() not in ("Add", "Multiply"):
            return None
        user = users[0].get_node()
        other = user.input_value(1 - users[0].get_index()).get_node()
        if other.get_type_name() == "Convert":
            other = other.input_value(0).get_node()
        product = user.output(0)
        if other.get_type_name() != "Constant":  # neither a bias nor a factor
            return product if user.get_type_name() == "Add" else None


def _address_of_constant(matrix: Node) -> int | None:
    """Returns the address of a matrix's values, None if the value is not a constant."""
    constant = find_constant(matrix.get_node())
    return None if constant is None else int(constant.data.ctypes.data)


def add_outputs(graph: ov.Model, inputs: Iterable[ProductInput]) -> list[tuple[int, int | None]]:
    """Makes the inputs, and the sums with their products, outputs of the graph.

    Returns the indices of both, with None for an input without a sum.
    """

    def add(node: Node) -> int:
        index = len(graph.outputs)
        graph.add_outputs(node)[0].get_tensor().set_names({f"recorded.{index}"})
        return index

    return [(add(each.rows), None if each.total is None else add(each.total)) for each in inputs]


def record(
    runner: OpenVINORunner,
    inputs: Sequence[ProductInput],
    indices: Sequence[tuple[int, int | None]],
    chunks: Sequence[NDArray[np.int64]],
    path: Path,
) -> Recording:
    """Runs each chunk of token ids as a sequence of its own, and writes the input rows to `path`.

    Raises ModelLoadError if the model computes numbers that are not finite.
    """
    num_rows = sum(map(len, chunks))
    *offsets, num_bytes = np.cumsum([0, *(2 * num_rows * each.columns for each in inputs)]).tolist()
    squares = [np.zeros(each.columns) for each in inputs]
    num_read = 0
    with path.open("wb") as file, stage("reading the calibration text", num_bytes) as reading:
        for token_ids in chunks:
            # All rows are sampled: otherwise the last layer would compute fewer rows.
            all_rows = np.arange(len(token_ids), dtype=np.int64)
            runner.run(lone_batch(runner.info, token_ids, all_rows))
            for each, (index, index_of_sum), offset, sums in zip(
                inputs, indices, offsets, squares, strict=True
            ):
                rows = runner.output(index).reshape(len(token_ids), each.columns)
                rows = rows.astype(np.float32, copy=False)
                if index_of_sum is not None:
                    rows = rows / _norms(runner.output(index_of_sum).reshape(len(token_ids), -1))
                np.add(sums, np.einsum("rc,rc->c", rows, rows, dtype=np.float64), out=sums)
                file.seek(offset + 2 * num_read * each.columns)
                file.write(np.ascontiguousarray(encode_bf16(rows)["values"]).data)
            num_read += len(token_ids)
            reading.advance(num_bytes * len(token_ids) // num_rows)
    if not all(np.isfinite(sums).all() for sums in squares):
        raise ModelLoadError(
            "--calibrate: on the calibration text the model computes numbers that are not finite"
        )
    by_key = {
        key: RecordedInput(each.columns, offset, each.total is not None, sums)
        for each, offset, sums in zip(inputs, offsets, squares, strict=True)
        for key in each.keys
    }
    return Recording(path, num_rows, by_key)


def _norms(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms: NDArray[np.float32] = np.linalg.norm(
        rows.astype(np.float32, copy=False), axis=1, keepdims=True
    )
    return np.maximum(norms, np.float32(1e-20))
