"""Adds the products of adapters, (x @ A) @ B, to the product of a matrix, for each sequence's
adapter.

A and B of all slots are inputs of the graph, so that they can change between steps without
compiling anew. The rows of a step are gathered by adapter, [slots, most rows of a slot, columns],
so that one batched product serves all adapters; its result is gathered back. Rows without an
adapter gather an index out of range, for which the runtime's Gather gives zeros. A step without
adapters gets A and B of rank 0, and all these tensors are empty. Small operations cost by their
number more than by their work, so matrices that take the same rows share operations
(docs/decisions/0033-adapters.md).

Other parts of adapters have inputs only if the limits name them. DoRA multiplies each number of a
product by a factor, and biases shift it: each adapter has a vector for both, and a row gathers its
own adapter's. The vectors of norms are differences to the stored weights. Rows without an adapter
gather zeros: a factor is stored minus one. The host computes the adapters' embeddings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import (
    A_PREFIX,
    B_PREFIX,
    EMBEDDING_FACTOR,
    EMBEDDING_SHIFT,
    FACTOR_PREFIX,
    HEAD,
    NORM_PREFIX,
    ROWS,
    SAMPLED,
    SHIFT_PREFIX,
    SLOTS,
    AdaptedGroup,
    AdaptedMatrix,
    AdaptedTable,
    AdapterLimits,
    AdapterShape,
)
from ouzel.backends.openvino.graph.nodes import Node, gather, get_output, integers
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov
from ouzel.errors import ModelLoadError

_LAYERS = "model.layers."  # other matrices than these and the head are not adapted
_MAX_PARTS = 16  # most parts of a group; matrices that would have more are groups of their own


@dataclass(frozen=True, slots=True)
class _Adapted:
    matrix: AdaptedMatrix
    total: Node  # the sum of its product and a placeholder for the adapters' product


@dataclass(frozen=True, slots=True)
class _Sharing:
    """Collects the adapted matrices that take the same rows."""

    rows: Node
    suffix: str
    adapted: list[_Adapted]


class AdapterInputs:
    """Collects the adapted matrices of a graph, and builds the adapters' products at the end."""

    def __init__(self, graph: PagedGraph, limits: AdapterLimits, dtype: ov.Type) -> None:
        self._graph = graph
        self._limits = limits
        self._parts = limits.parts
        self._dtype = dtype
        self._vectors: dict[str, int] = {}
        self._vector_inputs: dict[str, Node] = {}
        self._norms: dict[str, NDArray[np.float32]] = {}
        self._embedding: AdaptedTable | None = None
        self._index_inputs: dict[str, Node] = {}
        self._sharing: dict[tuple[str, int, str], _Sharing] = {}

    def takes(self, name: str) -> bool:
        return name.startswith(_LAYERS) or (name == HEAD and "head" in self._parts)

    def added(self, product: Node, rows: Node, matrix: AdaptedMatrix) -> Node:
        """Returns the product plus the adapters' product, which `finish` fills in.

        Raises ModelLoadError if the rows have more than two dimensions.
        """
        output = get_output(rows)
        if output.get_partial_shape().rank.get_length() != 2:
            raise ModelLoadError(
                f"this family takes no adapters: {matrix.name} multiplies rows of three dimensions"
            )
        suffix = self._suffix
        key = output.get_node().get_name(), output.get_index(), suffix
        placeholder = ops.parameter([-1, matrix.num_rows], ov.Type.f32)
        total = ops.add(product, placeholder)
        self._sharing.setdefault(key, _Sharing(rows, suffix, [])).adapted.append(
            _Adapted(matrix, total)
        )
        if "dora" in self._parts:
            factor = self._vector(FACTOR_PREFIX + matrix.name, matrix.num_rows)
            total = ops.add(total, ops.multiply(product, factor))
        if "bias" in self._parts or ("dora" in self._parts and matrix.bias is not None):
            total = ops.add(total, self._vector(SHIFT_PREFIX + matrix.name, matrix.num_rows))
        return total

    def add_norm(
        self, normalised: Node, product: Node, name: str, stored: NDArray[np.float32]
    ) -> Node:
        """Returns the product of a norm with the adapters' weights; `name` ends in `.weight`."""
        if "norm" not in self._parts or not _has_rows(normalised):
            return product
        return ops.add(product, ops.multiply(normalised, self._norm(normalised, name, stored)))

    def add_norm_bias(self, rows: Node, name: str, stored: NDArray[np.float32]) -> Node:
        """Returns the rows of a norm with the adapters' biases; `name` ends in `.bias`."""
        if "bias" not in self._parts or not _has_rows(rows):
            return rows
        return ops.add(rows, self._norm(rows, name, stored))

    def add_embedding(self, rows: Node, table: AdaptedTable) -> Node:
        """Returns the embeddings of the tokens with the parts of their adapters."""
        if "embedding" not in self._parts:
            return rows
        self._embedding = table
        factor = self._graph.input(EMBEDDING_FACTOR, [-1, -1], ov.Type.f32)
        shift = self._graph.input(EMBEDDING_SHIFT, [-1, table.num_columns], ov.Type.f32)
        return ops.add(ops.multiply(rows, factor), shift)

    @property
    def _suffix(self) -> str:
        return SAMPLED if self._graph.has_sampled else ""

    def _norm(self, rows: Node, name: str, stored: NDArray[np.float32]) -> Node:
        """Returns the difference of each row's adapter to the stored values of a norm."""
        self._norms[name] = stored
        own = self._vector(NORM_PREFIX + name, len(stored))
        is_by_head = get_output(rows).get_partial_shape().rank.get_length() == 3
        return ops.unsqueeze(own, integers(1)) if is_by_head else own

    def _vector(self, name: str, size: int) -> Node:
        """Returns the vector of each row's adapter, [T, size]; zeros for rows without one."""
        if name not in self._vector_inputs:
            self._vectors[name] = size
            self._vector_inputs[name] = self._graph.input(name, [-1, size], ov.Type.f32)
        return gather(self._vector_inputs[name], self._index_input(SLOTS + self._suffix, 1))

    def finish(self) -> AdapterShape:
        """Builds the adapters' products. Raises ModelLoadError if no matrix can be adapted."""
        if not self._sharing:
            raise ModelLoadError("this model family does not support adapters")
        groups = []
        for sharing in self._sharing.values():
            in_slots = gather(sharing.rows, self._index_input(ROWS + sharing.suffix, 2))
            for adapted in _in_groups(sharing.adapted):
                group = _make_group(adapted)
                groups.append(group)
                deltas = self._deltas(in_slots, group, sharing.suffix)
                for each, delta in zip(adapted, deltas, strict=True):
                    each.total.input(1).replace_source_output(get_output(delta))
        return AdapterShape(
            tuple(groups),
            self._limits,
            self._dtype,
            vectors=self._vectors,
            norms=self._norms,
            embedding=self._embedding,
        )

    def _deltas(self, in_slots: Node, group: AdaptedGroup, suffix: str) -> Iterator[Node]:
        """Yields the adapters' product for each matrix; `in_slots` are the rows, [slots, W,
        columns].
        """
        a = self._matrix_input(A_PREFIX + group.name, [-1, group.num_columns, -1])
        b_rows = [group.num_parts] if len(group.matrices) > 1 else []
        b = self._matrix_input(B_PREFIX + group.name, [-1, *b_rows, -1, group.part_len])
        inner = _by_part(ops.matmul(in_slots, a, False, False), group)
        products = ops.matmul(inner, b, False, False)
        products = ops.reshape(products, integers(-1, group.part_len), False)
        for matrix, parts in zip(group.matrices, group.parts, strict=True):
            if len(parts) == 1:
                yield gather(products, self._index_input(parts.answers(suffix), 1))
            else:
                own = gather(products, self._index_input(parts.answers(suffix), 2))
                yield ops.reshape(own, integers(-1, matrix.num_rows), False)

    def _index_input(self, name: str, num_axes: int) -> Node:
        if name not in self._index_inputs:
            self._index_inputs[name] = self._graph.input(name, [-1] * num_axes, ov.Type.i32)
        return self._index_inputs[name]

    def _matrix_input(self, name: str, shape: list[int]) -> Node:
        parameter = self._graph.input(name, shape, self._dtype)
        return parameter if self._dtype == ov.Type.f32 else ops.convert(parameter, "f32")


def _has_rows(rows: Node) -> bool:
    """Tells whether the rows of a norm are the rows of the step: [T, size] or [T, heads, size]."""
    shape = get_output(rows).get_partial_shape()
    return shape.rank.get_length() in (2, 3) and shape[0].is_dynamic


def _in_groups(adapted: Sequence[_Adapted]) -> list[Sequence[_Adapted]]:
    together = _make_group(adapted)
    return [adapted] if together.num_parts <= _MAX_PARTS else [[each] for each in adapted]


def _make_group(adapted: Sequence[_Adapted]) -> AdaptedGroup:
    return AdaptedGroup(tuple(each.matrix for each in adapted))


def _by_part(inner: Node, group: AdaptedGroup) -> Node:
    """Turns [slots, W, matrices * rank] into [slots, parts, W, rank], for several matrices."""
    num_matrices = len(group.matrices)
    if num_matrices == 1:
        return inner
    by_matrix = ops.reshape(inner, integers(0, 0, num_matrices, -1), True)
    by_matrix = ops.transpose(by_matrix, integers(0, 2, 1, 3))
    if group.num_parts == num_matrices:
        return by_matrix
    matrix_of_part = [index for index, parts in enumerate(group.parts) for _ in range(len(parts))]
    return ops.gather(by_matrix, integers(*matrix_of_part), integers(1))
