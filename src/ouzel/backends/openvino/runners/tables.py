"""Reads and allocates tables, model inputs whose first dimension Ouzel chooses, such as caches.

Shapes and element types come from the compiled model; they depend on device, precision and KV type.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov


@dataclass(frozen=True)
class Table:
    name: str
    dtype: ov.Type
    row_shape: tuple[int, ...]  # shape of a block or a slot

    @property
    def row_bytes(self) -> int:
        return math.prod(self.row_shape) * int(self.dtype.bitwidth) // 8


def find_tables(
    model: ov.CompiledModel | ov.Model, *prefixes: str, dtype: ov.Type | None = None
) -> list[Table]:
    """Returns the inputs whose names have one of the prefixes.

    `dtype` replaces the type of the inputs: a compiled model may have another type than its graph.
    """
    found = []
    for port in model.inputs:
        name = port.get_any_name()
        if name.startswith(prefixes):
            shape = tuple(
                dimension.get_length() for dimension in list(port.get_partial_shape())[1:]
            )
            found.append(Table(name, dtype or port.get_element_type(), shape))
    return found


def allocate(tables: list[Table], num_rows: int) -> dict[str, ov.Tensor]:
    """Allocates the tables and returns the tensors by name.

    The system gives the memory page by page, when a row is first written. Raises RuntimeError if
    the system refuses the memory.
    """
    return {
        table.name: ov.Tensor(table.dtype, ov.Shape([num_rows, *table.row_shape]))
        for table in tables
    }


class TableRows:
    """Reads and writes rows of several tensors as bytes; implements `CacheRows`.

    A row joins the contents of all tensors at one index of their first dimension. Without tensors
    it is empty.
    """

    def __init__(self, tensors: Iterable[ov.Tensor]) -> None:
        self._tables = [
            tensor.data.reshape(len(tensor.data), -1).view(np.uint8) for tensor in tensors
        ]
        self._ends = np.cumsum([table.shape[1] for table in self._tables]).tolist()
        self.row_bytes: int = sum(table.shape[1] for table in self._tables)

    def read(self, row: int, record: NDArray[np.uint8]) -> None:
        for table, end in zip(self._tables, self._ends, strict=True):
            record[end - table.shape[1] : end] = table[row]

    def write(self, row: int, record: NDArray[np.uint8]) -> None:
        for table, end in zip(self._tables, self._ends, strict=True):
            table[row] = record[end - table.shape[1] : end]
