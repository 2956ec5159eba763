"""What a graph takes of adapters: the matrices that can be adapted, in groups of those that take
the same rows.

A group's A are one matrix side by side, [columns, matrices * rank]. Its B are cut into parts of as
many rows as divide all of them, [parts, rank, rows of a part]: one product makes them all, and
multiplies no zeros.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ouzel.backends.openvino.library import ov

A_PREFIX, B_PREFIX = "adapters_a.", "adapters_b."  # of inputs; behind it comes the group's name
ROWS, ANSWERS = "adapter_rows", "adapter_answers"
SAMPLED = ".sampled"  # behind these two, for matrices that take the sampled rows only


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedMatrix:
    name: str  # of the tensor, without `.weight`
    num_columns: int
    num_rows: int
    row_order: tuple[int, ...] | None  # in which the graph has its rows, of each so many


@dataclass(frozen=True, slots=True)
class PartRange:
    """A matrix has these of its group's parts."""

    begin: int
    end: int
    num_in_group: int

    def __len__(self) -> int:
        return self.end - self.begin

    def answers(self, suffix: str) -> str:
        """Names the input that says where what is added to each row is."""
        return f"{ANSWERS}{suffix}.{self.begin}-{self.end}.{self.num_in_group}"


@dataclass(frozen=True)
class AdaptedGroup:
    """These matrices take the same rows."""

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
        """Returns those of each matrix."""
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
    rank: int  # at most
    dtype: ov.Type

    @property
    def slot_bytes(self) -> int:
        """Returns what one adapter takes."""
        counts = (
            math.prod(group.a_shape(self.rank)) + math.prod(group.b_shape(self.rank))
            for group in self.groups
        )
        return sum(counts) * int(self.dtype.size)

    @property
    def matrices(self) -> tuple[AdaptedMatrix, ...]:
        return tuple(matrix for group in self.groups for matrix in group.matrices)
