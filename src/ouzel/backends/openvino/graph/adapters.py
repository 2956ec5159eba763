"""Adapters add (x @ A) @ B to the product of a matrix, each to the rows of its own sequences.

A and B of all slots are inputs of the graph, [slots, columns, rank] and [slots, rank, rows]: any of them can be changed
between steps, and nothing is compiled again. The rows of a step are gathered by adapter, [slots, most rows of one,
columns], so that one product of batches serves all; what comes of it is gathered back. Rows of no adapter ask for one
that is not there, which the runtime's Gather makes zeros. A step that uses no adapter takes no slots: all of this is
empty then (docs/decisions/0033-adapters.md).
"""

from dataclasses import dataclass

from ouzel.backends.openvino.graph.nodes import Node, gather, integers, output_of
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ops, ov
from ouzel.errors import ModelLoadError

A_PREFIX, B_PREFIX = "adapters_a.", "adapters_b."  # of inputs; behind it comes the matrix's name
GROUPS, ANSWERS = "adapter_rows", "adapter_answers"
SAMPLED = ".sampled"  # behind these two, for matrices that take the sampled rows only
_LAYERS = "model.layers."  # what lies elsewhere, and what routes, is not adapted


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedMatrix:
    name: str  # of the tensor, without `.weight`
    num_columns: int
    num_rows: int
    row_order: tuple[int, ...] | None  # in which the graph has its rows, of each so many


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """The graph takes adapters like this."""

    matrices: tuple[AdaptedMatrix, ...]
    rank: int  # at most
    dtype: ov.Type


class AdapterInputs:
    def __init__(self, graph: PagedGraph, rank: int, dtype: ov.Type) -> None:
        self._matrices: list[AdaptedMatrix] = []
        self._graph = graph
        self._rank = rank
        self._dtype = dtype
        self._rows: dict[str, tuple[Node, Node]] = {}  # inputs, by what they end with
        self._grouped: dict[tuple[str, int], Node] = {}

    def shape(self) -> AdapterShape:
        """Raises ModelLoadError where there is nothing to adapt."""
        if not self._matrices:
            raise ModelLoadError("this family takes no adapters, or none yet")
        return AdapterShape(tuple(self._matrices), self._rank, self._dtype)

    def takes(self, name: str) -> bool:
        return name.startswith(_LAYERS)

    def added(self, product: Node, rows: Node, matrix: AdaptedMatrix) -> Node:
        """Returns the product with what adapters add to it."""
        if output_of(rows).get_partial_shape().rank.get_length() != 2:
            raise ModelLoadError(f"this family takes no adapters: {matrix.name} has rows of several parts")
        self._matrices.append(matrix)
        suffix = SAMPLED if self._graph.has_sampled else ""
        _, answers = self._row_inputs(suffix)
        a = self._input(A_PREFIX + matrix.name, [-1, matrix.num_columns, -1])
        b = self._input(B_PREFIX + matrix.name, [-1, -1, matrix.num_rows])
        inner = ops.matmul(self._in_groups(rows, suffix), a, False, False)
        deltas = ops.reshape(ops.matmul(inner, b, False, False), integers(-1, matrix.num_rows), False)
        return ops.add(product, gather(deltas, answers))

    def _in_groups(self, rows: Node, suffix: str) -> Node:
        """Gathers rows once for all matrices that take them."""
        output = output_of(rows)
        key = output.get_node().get_name(), output.get_index()
        if key not in self._grouped:
            self._grouped[key] = gather(rows, self._row_inputs(suffix)[0])
        return self._grouped[key]

    def _row_inputs(self, suffix: str) -> tuple[Node, Node]:
        if suffix not in self._rows:
            groups = self._graph.input(GROUPS + suffix, [-1, -1], ov.Type.i32)
            self._rows[suffix] = groups, self._graph.input(ANSWERS + suffix, [-1], ov.Type.i32)
        return self._rows[suffix]

    def _input(self, name: str, shape: list[int]) -> Node:
        parameter = self._graph.input(name, shape, self._dtype)
        return parameter if self._dtype == ov.Type.f32 else ops.convert(parameter, "f32")
