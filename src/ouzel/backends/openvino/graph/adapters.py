"""Adapters add (x @ A) @ B to the product of a matrix, each to the rows of its own sequences.

A and B of all slots are inputs of the graph: any of them can be changed between steps, and nothing
is compiled again. The rows of a step are gathered by adapter, [slots, most rows of one, columns],
so that one product of batches serves all; what comes of it is gathered back. Rows of no adapter ask
for one that is not there, which the runtime's Gather makes zeros. A step that uses no adapter takes
A and B of rank 0: all of this is empty then. Small operations cost by their number more than by
their work, so matrices that take the same rows share theirs (docs/decisions/0033-adapters.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.graph.adapter_shape import (
    A_PREFIX,
    B_PREFIX,
    ROWS,
    SAMPLED,
    AdaptedGroup,
    AdaptedMatrix,
    AdapterShape,
)
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, output_of
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov
from ouzel.errors import ModelLoadError

_LAYERS = "model.layers."  # what lies elsewhere, and what routes, is not adapted
_MAX_PARTS = 16  # of a group: matrices that come to more, and smaller ones, stay alone


@dataclass(frozen=True, slots=True)
class _Adapted:
    matrix: AdaptedMatrix
    total: Node  # of its product, and what is added once all matrices are known


@dataclass(frozen=True, slots=True)
class _Sharing:
    """What takes the same rows."""

    rows: Node
    suffix: str
    adapted: list[_Adapted]


class AdapterInputs:
    def __init__(self, graph: PagedGraph, rank: int, dtype: ov.Type) -> None:
        self._graph = graph
        self._rank = rank
        self._dtype = dtype
        self._index_inputs: dict[str, Node] = {}
        self._sharing: dict[tuple[str, int, str], _Sharing] = {}

    def takes(self, name: str) -> bool:
        return name.startswith(_LAYERS)

    def added(self, product: Node, rows: Node, matrix: AdaptedMatrix) -> Node:
        """Returns the product with what adapters add to it."""
        output = output_of(rows)
        if output.get_partial_shape().rank.get_length() != 2:
            raise ModelLoadError(
                f"this family takes no adapters: {matrix.name} has rows of several parts"
            )
        suffix = SAMPLED if self._graph.has_sampled else ""
        key = output.get_node().get_name(), output.get_index(), suffix
        unknown_yet = ops.parameter([-1, matrix.num_rows], ov.Type.f32)
        total = ops.add(product, unknown_yet)
        self._sharing.setdefault(key, _Sharing(rows, suffix, [])).adapted.append(
            _Adapted(matrix, total)
        )
        return total

    def finish(self) -> AdapterShape:
        """Builds what is added. Raises ModelLoadError where there is nothing to adapt."""
        if not self._sharing:
            raise ModelLoadError("this family takes no adapters, or none yet")
        groups = []
        for sharing in self._sharing.values():
            in_slots = gather(sharing.rows, self._index_input(ROWS + sharing.suffix, 2))
            for adapted in _in_groups(sharing.adapted):
                group = _group_of(adapted)
                groups.append(group)
                for each, delta in zip(
                    adapted, self._deltas(in_slots, group, sharing.suffix), strict=True
                ):
                    each.total.input(1).replace_source_output(output_of(delta))
        return AdapterShape(tuple(groups), self._rank, self._dtype)

    def _deltas(self, in_slots: Node, group: AdaptedGroup, suffix: str) -> Iterator[Node]:
        """Takes rows as [slots, W, columns]; yields what is added to those of each matrix."""
        a = self._matrix_input(A_PREFIX + group.name, [-1, group.num_columns, -1])
        b_rows = [group.num_parts] if len(group.matrices) > 1 else []
        b = self._matrix_input(B_PREFIX + group.name, [-1, *b_rows, -1, group.part_len])
        inner = _by_part(ops.matmul(in_slots, a, False, False), group)
        products = ops.reshape(
            ops.matmul(inner, b, False, False), integers(-1, group.part_len), False
        )
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


def _in_groups(adapted: Sequence[_Adapted]) -> list[Sequence[_Adapted]]:
    together = _group_of(adapted)
    return [adapted] if together.num_parts <= _MAX_PARTS else [[each] for each in adapted]


def _group_of(adapted: Sequence[_Adapted]) -> AdaptedGroup:
    return AdaptedGroup(tuple(each.matrix for each in adapted))


def _by_part(inner: Node, group: AdaptedGroup) -> Node:
    """Makes [slots, parts, W, rank] of [slots, W, matrices * rank], where there are several
    matrices.
    """
    num_matrices = len(group.matrices)
    if num_matrices == 1:
        return inner
    by_matrix = ops.transpose(
        ops.reshape(inner, integers(0, 0, num_matrices, -1), True), integers(0, 2, 1, 3)
    )
    if group.num_parts == num_matrices:
        return by_matrix
    matrix_of_part = [index for index, parts in enumerate(group.parts) for _ in range(len(parts))]
    return ops.gather(by_matrix, integers(*matrix_of_part), integers(1))
