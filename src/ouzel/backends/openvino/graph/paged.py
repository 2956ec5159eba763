"""Collects the inputs of a language model's graph, and the constants with its weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.chunk_length import ChunkLength
from ouzel.backends.openvino.graph.constants import Constants, ExpertsMatrix
from ouzel.backends.openvino.graph.nodes import Node, gather, get_output, int32, integers
from ouzel.backends.openvino.kernels.gates import Gate
from ouzel.backends.openvino.kernels.products import LINEAR, replace_rows
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Matrix

_PAGING = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
_CROSS_PAGING = (
    "cross_past_lens",
    "cross_subsequence_begins",
    "cross_block_indices",
    "cross_block_indices_begins",
)
_STATE_PAGING = ("state_slots", "state_slots_begins", "state_interval")


@dataclass(frozen=True)
class Paging:
    """The inputs that tell attention which blocks of a cache each sequence reads and writes."""

    tables: Sequence[Node]  # lengths in the cache, begins of sequences, blocks, begins of blocks
    max_context_len: Node


@dataclass(frozen=True)
class Chunking:
    """The inputs for sequences in chunks: the single rows of a step, and the rows in chunks.

    runners/chunked_rows.py makes these inputs.
    """

    single_rows: Node  # the rows of sequences with a single row
    paging: tuple[Node, ...]  # `state_paging` of these sequences
    again: tuple[Node, ...]  # the same, but reading the slots that were just written
    length: ChunkLength  # C, the length of each of N chunks
    rows: Node  # rows of all chunks, one after the other
    is_row: Node  # [N * C, 1]: 1, or 0 for a place after the end of its sequence
    # slots of the states that chunks begin with; the slot of zeros for a chunk that continues
    # another
    slots: Node
    goes_on: Node  # True for a chunk that continues the chunk before
    last_chunks: Node  # the last chunk of each sequence
    # the place of each row of the step among the single rows and the rows in chunks after them
    answers: Node


class PagedGraph:
    """A graph with the inputs of every model; parts of the model add inputs by `input`."""

    def __init__(self, *, keeps_rows: bool = False) -> None:
        """With `keeps_rows` the graph computes all rows to the end, not only the sampled rows."""
        self.parameters: list[Node] = []
        self._keeps_rows = keeps_rows  # True: `sample_rows` keeps all rows
        self.has_sampled = False  # True: operations added from now on take the sampled rows only
        self._outputs: dict[str, Node] = {}
        self._constants = Constants()
        self.arrays = self._constants.arrays  # these must outlive the compiled model
        self.two_way_tokens: Node | None = None  # [T]: 1 for tokens that attend to later ones, or 0
        self.token_ids = self.input("input_ids", [-1], ov.Type.i64)
        self._sampled_rows = self.input("sampled_rows", [-1], ov.Type.i64)
        self.paging = [self.input(name, [-1], ov.Type.i32) for name in _PAGING]
        self.max_context_len = self.input("max_context_len", [], ov.Type.i32)

    @property
    def own_paging(self) -> Paging:
        """Returns the inputs for the cache of the tokens themselves."""
        return Paging(self.paging, self.max_context_len)

    @cached_property
    def cross_paging(self) -> Paging:
        """Adds the inputs for the cache of the sound that the tokens attend to."""
        tables = [self.input(name, [-1], ov.Type.i32) for name in _CROSS_PAGING]
        return Paging(tables, self.input("cross_max_context_len", [], ov.Type.i32))

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        parameter = ops.parameter(shape, dtype)
        parameter.output(0).set_names({name})
        parameter.set_friendly_name(name)
        self.parameters.append(parameter)
        return parameter

    @cached_property
    def state_paging(self) -> tuple[Node, ...]:
        """Adds the inputs that tell operations with states the slots that each sequence reads and
        writes.
        """
        past_lens, subsequence_begins, *_ = self.paging
        slots, slots_begins, interval = (
            self.input(name, [-1], ov.Type.i32) for name in _STATE_PAGING
        )
        return subsequence_begins, slots, slots_begins, past_lens, interval

    @cached_property
    def chunking(self) -> Chunking:
        """Adds the inputs for the computation of long sequences in chunks."""
        names = ("single_rows", "single_begins", "chunk_slots", "last_chunks", "answer_rows")
        single_rows, begins, slots, last, answers = (
            self.input(name, [-1], ov.Type.i32) for name in names
        )
        chunk_rows = self.input("chunk_rows", [-1, -1], ov.Type.i32)
        rows = ops.reshape(chunk_rows, integers(-1), False)
        _, read_and_written, *others = self.state_paging
        written = ops.gather(
            ops.reshape(read_and_written, integers(-1, 2), False), integers(1, 1), int32(1)
        )
        again = ops.reshape(written, integers(-1), False)
        is_row = ops.greater_equal(rows, int32(0))
        return Chunking(
            single_rows=single_rows,
            paging=(begins, read_and_written, *others),
            again=(begins, again, *others),
            length=ChunkLength(chunk_rows),
            rows=ops.maximum(rows, ops.subtract(int32(-1), rows)),
            is_row=ops.unsqueeze(ops.convert(is_row, "f32"), integers(1)),
            slots=ops.maximum(slots, int32(0)),
            goes_on=ops.less(slots, int32(0)),
            last_chunks=last,
            answers=answers,
        )

    def output(self, name: str, value: Node) -> None:
        """Adds a further output to the graph."""
        self._outputs[name] = value

    def constant(self, array: NDArray[np.generic], shape: tuple[int, ...], dtype: ov.Type) -> Node:
        """Returns a constant that points into the array without a copy."""
        return self._constants.constant(array, shape, dtype)

    def array(self, values: NDArray[np.float32]) -> Node:
        return self._constants.array(values)

    def product(self, rows: Node, matrix: Matrix, bias: NDArray[np.float32] | None = None) -> Node:
        """Multiplies the rows by the transpose of the matrix, and adds the bias."""
        return self._constants.product(rows, matrix, bias)

    def mixture(
        self, rows: Node, choice: tuple[Node, Node], gate: Gate, matrices: Sequence[ExpertsMatrix]
    ) -> Node:
        """Adds the results of the chosen experts of each row, times their weights."""
        return self._constants.mixture(rows, choice, gate, matrices)

    def embed(self, matrix: Matrix, numbers: Node) -> Node:
        """Returns the rows of the matrix with these numbers."""
        return self._constants.embed(matrix, numbers)

    def matrix(self, matrix: Matrix) -> Node:
        """Returns the matrix in f32, as an expression that the plugin keeps compressed."""
        return self._constants.matrix(matrix)

    def sample_rows(self, rows: Node) -> Node:
        """Gathers the rows whose logits are needed.

        Of a product by a matrix it gathers the rows before the product.
        """
        if self._keeps_rows:
            return rows
        self.has_sampled = True
        node = get_output(rows).get_node()
        if node.get_type_name() == LINEAR:
            return replace_rows(node, gather(node.input_value(0), self._sampled_rows))
        if node.get_type_name() != "MatMul":
            return gather(rows, self._sampled_rows)
        rows, matrix = (node.input_value(index) for index in range(2))
        return ops.matmul(gather(rows, self._sampled_rows), matrix, **node.get_attributes())

    def sample_kept_rows(self, rows: Node) -> Node:
        """Gathers the rows whose logits are needed, and lets `sample_rows` do so from now on."""
        self._keeps_rows = False
        return self.sample_rows(rows)

    def finish(self, rows: Node, name: str = "logits") -> ov.Model:
        """Returns the finished graph, with `rows` as its first output."""
        results = []
        for output, value in {name: rows, **self._outputs}.items():
            result = ops.result(value)
            result.output(0).set_names({output})
            results.append(result)
        return ov.Model(results, self.parameters, "ouzel")

    def finish_used(self, rows: Node, name: str) -> ov.Model:
        """Returns the finished graph of a further part of a model, without the inputs that no
        operation takes.
        """
        self.parameters = [each for each in self.parameters if each.output(0).get_target_inputs()]
        return self.finish(rows, name)
