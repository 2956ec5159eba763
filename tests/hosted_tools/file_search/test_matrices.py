"""Tests compare queries with vectors: files that are read, the order of chunks, faulty vectors."""

from collections.abc import Collection

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.matrices import Matrices
from ouzel.store.vector_stores.records import ChunkPlace, VectorPart

EAST = np.array([[1.0, 0.0]], np.float32)
Found = list[tuple[ChunkPlace, float]]


class Parts:
    """Has vectors of files, and notes which files were read."""

    def __init__(self, **vectors: list[list[float]]) -> None:
        """Without `vectors`, the file n has (1, 0) and (0, 1) in chunk 0, and (n, 1) in chunk 1."""
        self.reads: list[list[int]] = []
        self._vectors = {int(name[1:]): rows for name, rows in vectors.items()}

    def _get(self, number: int) -> NDArray[np.float16]:
        rows = self._vectors.get(number, [[1, 0], [0, 1], [number, 1]])
        return np.array(rows, np.float16)

    async def vector_sizes(self, file_numbers: Collection[int]) -> dict[int, int]:
        return {number: self._get(number).nbytes for number in file_numbers}

    async def vectors(self, file_numbers: Collection[int]) -> list[VectorPart]:
        self.reads.append(sorted(file_numbers))
        return [
            VectorPart(
                file_number=number,
                positions=np.array([0, 0, 1][: len(self._get(number))], np.int32).tobytes(),
                vectors=self._get(number).tobytes(),
            )
            for number in file_numbers
        ]


async def find(
    matrices: Matrices, *numbers: int, allowed: Collection[int] | None = None, limit: int = 10
) -> Found:
    chosen = None if allowed is None else frozenset(allowed)
    [found] = await matrices.find_nearest("vs", frozenset(numbers), chosen, EAST, limit)
    return found


def make(parts: Parts, **limits: int) -> Matrices:
    return Matrices(parts, **limits)  # type: ignore[arg-type]  # it needs two methods of the store


def read_places(found: Found) -> list[tuple[int, int]]:
    return [(place.file_number, place.position) for place, _ in found]


async def test_only_new_files_are_read() -> None:
    parts = Parts()
    matrices = make(parts)
    assert read_places(await find(matrices, 2)) == [(2, 1), (2, 0)]
    assert read_places(await find(matrices, 2, 3))[0] == (3, 1)
    assert set(read_places(await find(matrices, 2, 3, allowed={2}))) == {(2, 0), (2, 1)}
    assert read_places(await find(matrices, 3)) == [(3, 1), (3, 0)]
    assert read_places(await find(matrices)) == []
    assert parts.reads == [[2], [3]]


async def test_a_large_vector_store_is_read_in_groups_and_found_alike() -> None:
    numbers = range(2, 12)
    whole = await find(make(Parts()), *numbers, limit=7)
    parts = Parts()
    matrices = make(parts, max_bytes=1, bytes_at_once=24)
    for _ in range(2):
        assert await find(matrices, *numbers, limit=7) == whole
    groups = [[number, number + 1] for number in range(2, 12, 2)]
    assert parts.reads == groups * 2


async def test_a_large_vector_store_is_read_only_where_the_filter_allows() -> None:
    parts = Parts()
    found = await find(make(parts, max_bytes=1), 2, 3, 4, allowed={3, 9})
    assert read_places(found) == [(3, 1), (3, 0)]
    assert parts.reads == [[3]]


async def test_vectors_in_half_precision_are_found_alike() -> None:
    """Five files fit into the memory with 32 bits, six with 16 bits."""
    parts = Parts()
    matrices = make(parts, max_bytes=6 * 3 * (4 + 16))
    for last in (6, 7, 8, 6):
        numbers = range(2, last + 1)
        assert await find(matrices, *numbers) == await find(make(Parts()), *numbers)
    assert parts.reads == [list(range(2, 7)), [7], list(range(2, 9)), list(range(2, 7))]


async def test_a_vector_store_that_is_used_less_leaves_the_memory() -> None:
    parts = Parts()
    matrices = make(parts, max_bytes=2 * 3 * (8 + 16))  # two files with three rows
    for store_id, number in (("a", 2), ("b", 3), ("a", 2), ("c", 4), ("a", 2), ("b", 3)):
        await matrices.find_nearest(store_id, frozenset({number}), None, EAST, 1)
    assert parts.reads == [[2], [3], [4], [3]]


@pytest.mark.parametrize("max_bytes", [1, 10**6])
async def test_a_vector_that_is_no_number_is_not_found(max_bytes: int) -> None:
    parts = Parts(f2=[[float("nan"), 0], [float("nan"), 1], [0.5, 0]])
    found = await find(make(parts, max_bytes=max_bytes), 2)
    assert found == [(ChunkPlace(2, 1), 0.5)]


@pytest.mark.parametrize("max_bytes", [1, 10**6])
async def test_a_model_with_vectors_of_another_size_is_named(max_bytes: int) -> None:
    parts = Parts(f3=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    matrices = make(parts, max_bytes=max_bytes)
    with pytest.raises(InvalidRequest, match=r"vectors of 4 numbers, and .* makes 2 now"):
        await find(matrices, 2, 3)
    assert read_places(await find(matrices, 2)) == [(2, 1), (2, 0)]
