"""Holds the vectors of vector stores in memory, and compares a query with all of them.

The comparison is exact. The files of a vector store never change, so that only
files that a matrix lacks have to be read. A vector store that is too large
for the memory is read at each search.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.hosted_tools.file_search.embedder import Vectors
from ouzel.store.vector_stores.base import VectorStores
from ouzel.store.vector_stores.records import ChunkPlace, VectorPart

_MAX_BYTES = 512 * 2**20
_FILES_AT_ONCE = 500
_Places = NDArray[np.int64]  # [vectors, 2]: number of the file, position of the chunk


class _Matrix:
    """The vectors of one vector store."""

    def __init__(self, file_numbers: frozenset[int], vectors: Vectors, places: _Places) -> None:
        self.file_numbers = file_numbers
        self.vectors = vectors
        self.places = places

    @property
    def num_bytes(self) -> int:
        return self.vectors.nbytes + self.places.nbytes


class Matrices:
    """Belongs to one event loop."""

    def __init__(self, store: VectorStores, *, max_bytes: int = _MAX_BYTES) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._matrices: OrderedDict[str, _Matrix] = OrderedDict()

    async def find_nearest(
        self,
        store_id: str,
        file_numbers: frozenset[int],
        allowed: frozenset[int] | None,
        queries: Vectors,
        limit: int,
    ) -> list[list[tuple[ChunkPlace, float]]]:
        """Returns the chunks nearest to each query with their similarity, the nearest first.

        `file_numbers` are all completed files of the vector store; with `allowed`, only chunks of
        these files are returned.
        """
        matrix = await self._load(store_id, file_numbers, queries.shape[1])
        return await asyncio.to_thread(_search, matrix, allowed, queries, limit)

    async def _load(self, store_id: str, file_numbers: frozenset[int], size: int) -> _Matrix:
        old = self._matrices.get(store_id) or _make_empty(size)
        missing = sorted(file_numbers - old.file_numbers)
        if not missing and old.file_numbers == file_numbers:
            if store_id in self._matrices:
                self._matrices.move_to_end(store_id)
            return old
        parts: list[VectorPart] = []
        for first in range(0, len(missing), _FILES_AT_ONCE):
            parts += await self._store.vectors(missing[first : first + _FILES_AT_ONCE])
        matrix = await asyncio.to_thread(_update, old, file_numbers, parts, size)
        self._keep(store_id, matrix)
        return matrix

    def _keep(self, store_id: str, matrix: _Matrix) -> None:
        self._matrices.pop(store_id, None)
        if matrix.num_bytes > self._max_bytes:
            return
        self._matrices[store_id] = matrix
        while sum(each.num_bytes for each in self._matrices.values()) > self._max_bytes:
            self._matrices.popitem(last=False)


def _make_empty(size: int) -> _Matrix:
    return _Matrix(frozenset(), np.empty((0, size), np.float32), np.empty((0, 2), np.int64))


def _update(
    old: _Matrix, file_numbers: frozenset[int], parts: Sequence[VectorPart], size: int
) -> _Matrix:
    """Drops the vectors of other files and adds the vectors of `parts`."""
    vectors, places = [old.vectors], [old.places]
    if not old.file_numbers <= file_numbers:
        kept = _find_rows(old, file_numbers)
        vectors, places = [old.vectors[kept]], [old.places[kept]]
    for part in parts:
        rows = np.frombuffer(part.vectors, np.float16).reshape(-1, size).astype(np.float32)
        positions = np.frombuffer(part.positions, np.int32)
        vectors.append(rows)
        places.append(
            np.stack([np.full(len(positions), part.file_number), positions], axis=1).astype(
                np.int64
            )
        )
    return _Matrix(file_numbers, np.concatenate(vectors), np.concatenate(places))


def _find_rows(matrix: _Matrix, file_numbers: Collection[int]) -> NDArray[np.bool_]:
    return np.isin(matrix.places[:, 0], np.fromiter(file_numbers, np.int64))


def _search(
    matrix: _Matrix, allowed: frozenset[int] | None, queries: Vectors, limit: int
) -> list[list[tuple[ChunkPlace, float]]]:
    if not len(matrix.vectors):
        return [[] for _ in queries]
    scores = queries @ matrix.vectors.T
    if allowed is not None:
        scores[:, ~_find_rows(matrix, allowed)] = -np.inf
    return [_take_best(matrix.places, row, limit) for row in scores]


def _take_best(
    places: _Places, scores: NDArray[np.float32], limit: int
) -> list[tuple[ChunkPlace, float]]:
    """Returns the best chunks; the score of a chunk is the score of its best vector."""
    # A chunk of n windows has n vectors, so that more rows than chunks are looked at.
    num_rows = min(4 * limit, len(scores))
    rows = np.argpartition(-scores, num_rows - 1)[:num_rows]
    best: dict[ChunkPlace, float] = {}
    for row in rows[np.lexsort((rows, -scores[rows]))]:
        if np.isneginf(scores[row]) or len(best) == limit:
            break
        place = ChunkPlace(int(places[row, 0]), int(places[row, 1]))
        best.setdefault(place, float(scores[row]))
    return list(best.items())
