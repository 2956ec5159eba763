"""Describes the matrices that adapters can change, in groups of matrices that take the same rows.

The matrices A of a group stand side by side in one matrix, [columns, matrices * rank]. The matrices
B of a group are cut into parts of equal rows, [parts, rank, rows of a part]; the rows of a part are
the greatest common divisor of the rows of all B. So one product computes all of them and multiplies
no zeros.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ouzel.backends.openvino.library import ov

A_PREFIX, B_PREFIX = "adapters_a.", "adapters_b."  # prefixes of inputs; the group's name follows
ROWS, ANSWERS = "adapter_rows", "adapter_answers"
SAMPLED = ".sampled"  # suffix of these two, for matrices that take the sampled rows only


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedMatrix:
    name: str  # name of the tensor, without `.weight`
    num_columns: int
    num_rows: int
    # the order of the rows in the graph; it applies to each run of as many rows
    row_order: tuple[int, ...] | None = None


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
    rank: int  # largest rank of an adapter
    dtype: ov.Type

    @property
    def slot_bytes(self) -> int:
        """Returns the bytes of one adapter."""
        counts = (
            math.prod(group.a_shape(self.rank)) + math.prod(group.b_shape(self.rank))
            for group in self.groups
        )
        return sum(counts) * int(self.dtype.size)

    @property
    def matrices(self) -> tuple[AdaptedMatrix, ...]:
        return tuple(matrix for group in self.groups for matrix in group.matrices)
