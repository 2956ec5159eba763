"""Computes how an adapter changes a matrix, in the form that the graph takes.

With DoRA row i of W + B A has the length m[i] instead of its own: the graph multiplies the product
by f[i] = m[i] / |W + B A|[i], and B has this factor already. The weights of the graph
are measured, which may be rounded. The factor would also multiply the bias: the shift corrects it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import AdaptedMatrix, AdaptedTable
from ouzel.backends.openvino.weights.cells import BLOCK_ROWS
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.backends.openvino.weights.unpacking import decode_pieces, decode_rows

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class MatrixTensors:
    """The tensors of an adapter for one matrix, as float32; B and its bias are scaled."""

    a: Floats  # [rank, columns]
    b: Floats  # [rows, rank]
    b_bias: Floats | None = None
    magnitude: Floats | None = None  # DoRA's m, [rows]
    bias: Floats | None = None  # replaces the bias, which the model has, too
    tokens: tuple[int, ...] = ()  # rows that are replaced
    token_rows: Floats | None = None  # [tokens, columns]


@dataclass(frozen=True, slots=True)
class MatrixChange:
    """The change of one matrix; its rows have the order of the graph."""

    a: Floats  # [rank, columns]
    b: Floats  # [rows, rank]
    factor: Floats | None  # f - 1, [rows]; None: the product stays
    shift: Floats | None  # is added to the product, [rows]


@dataclass(frozen=True, slots=True)
class EmbeddingChange:
    """The change of the embedding: E[t] * factor + A[t] B, or a row that replaces E[t]."""

    a: Floats  # [tokens, rank]
    b: Floats  # [rank, columns]
    factor: Floats  # [columns], or [1] for a factor of 1
    tokens: NDArray[np.int64]  # tokens whose rows are replaced, in ascending order
    token_rows: Floats  # [replaced tokens, columns]


def compute_change(matrix: AdaptedMatrix, tensors: MatrixTensors) -> MatrixChange:
    def in_order(values: Floats) -> Floats:
        return reorder_rows(values.reshape(matrix.num_rows, -1), matrix.row_order)

    a, b = tensors.a, in_order(tensors.b)
    base_bias = np.zeros(1, np.float32) if matrix.bias is None else matrix.bias
    bias = base_bias if tensors.bias is None else in_order(tensors.bias)[:, 0]
    factor: Floats | None = None
    shift: Floats | None = None
    if tensors.magnitude is not None:
        assert matrix.weights is not None
        lengths = _measure_rows(matrix.weights, a, b)
        with np.errstate(all="ignore"):  # AdapterFiles refuses infinite numbers
            whole = in_order(tensors.magnitude)[:, 0] / lengths
        b *= whole[:, None]
        factor = whole - np.float32(1)
        if matrix.bias is not None:
            shift = bias - whole * base_bias
    elif tensors.bias is not None:
        shift = bias - base_bias
    if tensors.b_bias is not None:
        added = in_order(tensors.b_bias)[:, 0]
        shift = added if shift is None else shift + added
    if tensors.token_rows is not None:
        assert matrix.weights is not None
        chosen = _one_hot(tensors.tokens, matrix.num_rows)
        a = np.concatenate([a, tensors.token_rows - _read_rows(matrix.weights, tensors.tokens)])
        b = np.concatenate([b, chosen], axis=1)
    return MatrixChange(a, b, factor, shift)


def compute_embedding(table: AdaptedTable, tensors: MatrixTensors) -> EmbeddingChange:
    """Computes the change of the embedding, whose A is [rank, tokens] and B [columns, rank]."""
    a, b = np.ascontiguousarray(tensors.a.T), np.ascontiguousarray(tensors.b.T)
    factor = np.ones(1, np.float32)
    if tensors.magnitude is not None:
        squares = np.zeros(table.num_columns, np.float64)
        for begin, rows in decode_pieces(table.weights):
            changed = rows + a[begin : begin + len(rows)] @ b
            squares += np.einsum("ij,ij->j", changed, changed)
        with np.errstate(all="ignore"):
            factor = (tensors.magnitude / np.sqrt(squares)).astype(np.float32)
        b *= factor
    order = np.argsort(tensors.tokens) if tensors.tokens else np.zeros(0, np.int64)
    token_rows = np.zeros((0, table.num_columns), np.float32)
    if tensors.token_rows is not None:
        token_rows = tensors.token_rows[order]
    tokens = np.array(tensors.tokens, np.int64)[order]
    return EmbeddingChange(a, b, factor, tokens, token_rows)


def reorder_rows(matrix: Floats, order: tuple[int, ...] | None) -> Floats:
    """Brings the rows of B into the order of the graph's matrix; each `order` applies to as many
    rows.
    """
    if order is None:
        return matrix
    # B of a matrix whose bias alone changes has no columns, so that numpy cannot infer a size
    groups = matrix.reshape(len(matrix) // len(order), len(order), matrix.shape[1])
    return groups[:, order].reshape(matrix.shape)


def differs(weights: Matrix, rows: Floats) -> bool:
    """Tells whether the first rows of a matrix are others, and not only rounded."""
    own = decode_rows(weights, 0, len(rows))
    change = float(np.linalg.norm(own - rows))
    return not change <= _ROUNDING * float(np.linalg.norm(rows))  # NaN differs, too


# The share of a matrix that rounding may change: Q2_K changes 0.26, and types of fewer bits change
# more. The rows of another matrix differ by about 1.4.
_ROUNDING = 0.7


def _measure_rows(weights: Matrix, a: Floats, b: Floats) -> Floats:
    """Returns the length of each row of W + B A."""
    lengths = np.zeros(len(b), np.float32)
    for begin, rows in decode_pieces(weights):
        end = begin + len(rows)
        lengths[begin:end] = np.linalg.norm(rows + b[begin:end] @ a, axis=1)
    return lengths


def _one_hot(tokens: tuple[int, ...], num_rows: int) -> Floats:
    chosen = np.zeros((num_rows, len(tokens)), np.float32)
    chosen[list(tokens), range(len(tokens))] = 1
    return chosen


def _read_rows(weights: Matrix, tokens: tuple[int, ...]) -> Floats:
    rows = []
    for token in tokens:
        begin = token // BLOCK_ROWS * BLOCK_ROWS
        rows.append(decode_rows(weights, begin, token + 1)[-1])
    return np.stack(rows)
