"""Describes the matrices that adapters can change, in groups of matrices that take the same rows.

The matrices A of a group stand side by side in one matrix, [columns, matrices * rank]. The matrices
B of a group are cut into parts of equal rows, [parts, rank, rows of a part]; the rows of a part are
the greatest common divisor of the rows of all B. So one product computes all of them and multiplies
no zeros.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.config.adapters import AdapterPart

A_PREFIX, B_PREFIX = "adapters_a.", "adapters_b."  # prefixes of inputs; the group's name follows
ROWS, ANSWERS = "adapter_rows", "adapter_answers"
SLOTS = "adapter_slots"  # the place of each row's adapter among the slots in use
SAMPLED = ".sampled"  # suffix of these three, for parts that take the sampled rows only
FACTOR_PREFIX, SHIFT_PREFIX = "adapters_factor.", "adapters_shift."  # the matrix's name follows
NORM_PREFIX = "adapters_norm."  # the tensor's name follows
EMBEDDING_FACTOR, EMBEDDING_SHIFT = "adapter_embedding_factor", "adapter_embedding_shift"
HEAD = "lm_head"  # name of the matrix that makes the logits, also if it is the embedding


@dataclass(frozen=True, slots=True)
class AdapterLimits:
    """The adapters that a graph is made for."""

    rank: int = 0  # largest rank of an adapter; 0: the model takes no adapters
    parts: frozenset[AdapterPart] = frozenset()  # parts beside the matrices A and B of layers


NO_ADAPTERS = AdapterLimits()


@dataclass(frozen=True, slots=True)
class AdaptedMatrix:
    name: str  # name of the tensor, without `.weight`
    num_columns: int
    num_rows: int
    # the order of the rows in the graph; it applies to each run of as many rows
    row_order: tuple[int, ...] | None = None
    weights: Matrix | None = field(default=None, compare=False)  # its rows are in the graph's order
    # it is in the graph's order
    bias: NDArray[np.float32] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AdaptedTable:
    """The embedding of the tokens."""

    name: str  # name of the tensor, without `.weight`
    num_rows: int
    num_columns: int
    weights: Matrix


@dataclass(frozen=True, slots=True)
class PartRange:
    """The parts of its group that a matrix has."""

    begin: int
    end: int
    num_in_group: int

    def __len__(self) -> int:
        return self.end - self.begin

    def answers(self, suffix: str) -> str:
        """Names the input with the place of each row's product."""
        return f"{ANSWERS}{suffix}.{self.begin}-{self.end}.{self.num_in_group}"


@dataclass(frozen=True)
class AdaptedGroup:
    """The matrices that take the same rows."""

    matrices: tuple[AdaptedMatrix, ...]

    @property
    def name(self) -> str:
        return self.matrices[0].name

    @property
    def num_columns(self) -> int:
        return self.matrices[0].num_columns

    @property
    def num_parts(self) -> int:
        return self.parts[-1].end

    @cached_property
    def part_len(self) -> int:
        return math.gcd(*(matrix.num_rows for matrix in self.matrices))

    @cached_property
    def parts(self) -> tuple[PartRange, ...]:
        """Returns the parts of each matrix."""
        ends = list(accumulate(matrix.num_rows // self.part_len for matrix in self.matrices))
        return tuple(
            PartRange(begin, end, ends[-1]) for begin, end in zip([0, *ends], ends, strict=False)
        )

    def a_shape(self, rank: int) -> tuple[int, ...]:
        return self.num_columns, len(self.matrices) * rank

    def b_shape(self, rank: int) -> tuple[int, ...]:
        shape = self.num_parts, rank, self.part_len
        return shape if len(self.matrices) > 1 else shape[1:]


@dataclass(frozen=True, slots=True)
class AdapterShape:
    groups: tuple[AdaptedGroup, ...]
    limits: AdapterLimits
    dtype: ov.Type
    # sizes of the vectors that each adapter has, by the name of the input
    vectors: Mapping[str, int] = field(default_factory=dict)
    # stored values of the norms, by the name of the tensor with its `.weight` or `.bias`
    norms: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    embedding: AdaptedTable | None = None  # None: the graph takes no adapters of the embedding

    @property
    def rank(self) -> int:
        return self.limits.rank

    @property
    def slot_bytes(self) -> int:
        """Returns the bytes of one adapter."""
        counts = (
            math.prod(group.a_shape(self.rank)) + math.prod(group.b_shape(self.rank))
            for group in self.groups
        )
        num_floats = sum(self.vectors.values())
        if self.embedding is not None:
            num_floats += self.rank * (self.embedding.num_rows + self.embedding.num_columns)
        return sum(counts) * int(self.dtype.size) + num_floats * 4

    @property
    def max_embedding_tokens(self) -> int:
        """Returns how many replaced rows of the embedding fit into the bytes of its LoRA."""
        table = self.embedding
        if table is None:
            return 0
        return self.rank * (table.num_rows + table.num_columns) // table.num_columns

    @property
    def matrices(self) -> tuple[AdaptedMatrix, ...]:
        return tuple(matrix for group in self.groups for matrix in group.matrices)
