"""Compares a query with all vectors of vector stores, and holds vectors in memory.

1.  The comparison is exact. Vectors are float32 in memory if they fit, because a search in
    float16 takes five times as long: its blocks become float32 first. A vector store that fits
    as float16 only is held so.
2.  The files of a vector store never change, so that only files that a matrix lacks are read.
3.  The vectors of a vector store that is too large for the memory are read at each search, some
    files at a time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.embedder import Vectors
from ouzel.store.vector_stores.base import VectorStores
from ouzel.store.vector_stores.records import ChunkPlace, VectorPart

_MAX_BYTES = 512 * 2**20
_BYTES_AT_ONCE = 32 * 2**20
_FILES_AT_ONCE = 500
_ROWS_AT_ONCE = 1024  # vectors that become float32 together and stay in the processor's cache
_PLACE_BYTES = 16  # bytes of one row of places
_Half = NDArray[np.float16]
_Kind = type[np.float16] | type[np.float32]
_Rows = NDArray[np.float16 | np.float32]
_Places = NDArray[np.int64]  # [vectors, 2]: number of the file, position of the chunk
_Found = list[list[tuple[ChunkPlace, float]]]  # the chunks of each query, the nearest first


class _Matrix:
    """The vectors of files."""

    def __init__(self, file_numbers: frozenset[int], vectors: _Rows, places: _Places) -> None:
        self.file_numbers = file_numbers
        self.vectors = vectors
        self.places = places

    @property
    def num_bytes(self) -> int:
        return self.vectors.nbytes + self.places.nbytes


class Matrices:
    """Belongs to one event loop."""

    def __init__(
        self,
        store: VectorStores,
        *,
        max_bytes: int = _MAX_BYTES,
        bytes_at_once: int = _BYTES_AT_ONCE,
    ) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._bytes_at_once = bytes_at_once
        self._matrices: OrderedDict[str, _Matrix] = OrderedDict()
        self._loading = asyncio.Lock()  # one load at a time bounds the memory

    async def find_nearest(
        self,
        store_id: str,
        file_numbers: frozenset[int],
        allowed: frozenset[int] | None,
        queries: Vectors,
        limit: int,
    ) -> _Found:
        """Returns the chunks nearest to each query with their similarity, the nearest first.

        `file_numbers` are all completed files of the vector store; with `allowed`, only chunks of
        these files are returned. Raises InvalidRequest for vectors of another size.
        """
        size = queries.shape[1]
        async with self._loading:
            matrix = await self._load(store_id, file_numbers, size)
        if matrix is not None:
            return await asyncio.to_thread(_search, matrix, allowed, queries, limit)
        return await self._search_in_store(
            file_numbers if allowed is None else allowed & file_numbers, queries, limit
        )

    async def _load(self, store_id: str, file_numbers: frozenset[int], size: int) -> _Matrix | None:
        """Returns the vectors of the files; None if they need too much memory."""
        matrix = self._matrices.pop(store_id, None)
        if matrix is None or matrix.vectors.shape[1] != size:
            matrix = _make_rows(0, size, np.float32)
        missing = file_numbers - matrix.file_numbers
        sizes = await self._store.vector_sizes(missing) if missing else {}
        num_new = sum(sizes.values()) // (2 * size)
        kind = self._choose_kind(len(matrix.vectors) + num_new, size)
        if kind is None:
            return None
        if matrix.file_numbers != file_numbers:
            matrix = await asyncio.to_thread(_copy, matrix, file_numbers, num_new, kind)
            first = len(matrix.vectors) - num_new
            for group in self._group(sizes):
                parts = await self._store.vectors(group)
                first = await asyncio.to_thread(_fill, matrix, parts, first)
            # A file that was deleted meanwhile leaves its rows empty at the end.
            matrix = _Matrix(file_numbers, matrix.vectors[:first], matrix.places[:first])
        self._keep(store_id, matrix)
        return matrix

    def _choose_kind(self, num_rows: int, size: int) -> _Kind | None:
        """Returns the numbers in which vectors fit into the memory."""
        kinds: tuple[_Kind, ...] = (np.float32, np.float16)
        for kind in kinds:
            row_bytes = size * np.dtype(kind).itemsize + _PLACE_BYTES
            if num_rows * row_bytes <= self._max_bytes:
                return kind
        return None

    def _keep(self, store_id: str, matrix: _Matrix) -> None:
        self._matrices[store_id] = matrix
        while sum(each.num_bytes for each in self._matrices.values()) > self._max_bytes:
            self._matrices.popitem(last=False)

    async def _search_in_store(
        self, file_numbers: frozenset[int], queries: Vectors, limit: int
    ) -> _Found:
        sizes = await self._store.vector_sizes(file_numbers)
        best: _Found = [[] for _ in queries]
        for group in self._group(sizes):
            parts = await self._store.vectors(group)
            found = await asyncio.to_thread(_search_parts, parts, queries, limit)
            for place, more in enumerate(found):
                joined = sorted(best[place] + more, key=lambda entry: -entry[1])
                best[place] = joined[:limit]
        return best

    def _group(self, sizes: Mapping[int, int]) -> Iterator[list[int]]:
        """Divides files into groups that are read at once."""
        group: list[int] = []
        num_bytes = 0
        for number, size in sorted(sizes.items()):
            is_full = num_bytes + size > self._bytes_at_once or len(group) == _FILES_AT_ONCE
            if group and is_full:
                yield group
                group, num_bytes = [], 0
            group.append(number)
            num_bytes += size
        if group:
            yield group


def _make_rows(num_rows: int, size: int, kind: _Kind) -> _Matrix:
    """Returns a matrix with rows to be filled."""
    places = np.empty((num_rows, 2), np.int64)
    return _Matrix(frozenset(), np.empty((num_rows, size), kind), places)


def _copy(old: _Matrix, file_numbers: frozenset[int], num_new: int, kind: _Kind) -> _Matrix:
    """Returns a matrix without the vectors of other files, and with `num_new` empty rows."""
    stays = _find_rows(old, file_numbers)
    num_rows = int(stays.sum())
    new = _make_rows(num_rows + num_new, old.vectors.shape[1], kind)
    chosen = slice(None) if stays.all() else stays  # a slice copies nothing
    new.vectors[:num_rows] = old.vectors[chosen]
    new.places[:num_rows] = old.places[chosen]
    return new


def _fill(matrix: _Matrix, parts: Sequence[VectorPart], first: int) -> int:
    """Writes vectors into the rows from `first` on, and returns the row behind them."""
    for part in parts:
        rows, positions = _read_part(part, matrix.vectors.shape[1])
        end = first + len(rows)
        matrix.vectors[first:end], matrix.places[first:end, 1] = rows, positions
        matrix.places[first:end, 0] = part.file_number
        first = end
    return first


def _read_part(part: VectorPart, size: int) -> tuple[_Half, NDArray[np.int32]]:
    """Returns vectors, and the position of the chunk of each. Raises InvalidRequest."""
    positions = np.frombuffer(part.positions, "<i4")
    vectors = np.frombuffer(part.vectors, "<f2")
    if len(vectors) != len(positions) * size:
        raise InvalidRequest(
            f"was made with vectors of {len(vectors) // len(positions)} numbers, and the model of "
            f"its name makes {size} now: serve the earlier model, or make the vector store anew",
            field="vector_store_id",
        )
    return vectors.reshape(-1, size), positions


def _find_rows(matrix: _Matrix, file_numbers: Collection[int]) -> NDArray[np.bool_]:
    return np.isin(matrix.places[:, 0], np.fromiter(file_numbers, np.int64))


def _search_parts(parts: Sequence[VectorPart], queries: Vectors, limit: int) -> _Found:
    size = queries.shape[1]
    num_rows = sum(len(part.vectors) for part in parts) // (2 * size)
    matrix = _make_rows(num_rows, size, np.float16)
    _fill(matrix, parts, 0)
    return _search(matrix, None, queries, limit)


def _search(
    matrix: _Matrix, allowed: frozenset[int] | None, queries: Vectors, limit: int
) -> _Found:
    num_rows = len(matrix.vectors)
    if not num_rows:
        return [[] for _ in queries]
    rows_at_once = num_rows if matrix.vectors.dtype == np.float32 else _ROWS_AT_ONCE
    scores = np.empty((len(queries), num_rows), np.float32)
    for first in range(0, num_rows, rows_at_once):
        block = slice(first, first + rows_at_once)
        scores[:, block] = queries @ matrix.vectors[block].astype(np.float32, copy=False).T
    scores[np.isnan(scores)] = -np.inf  # a faulty vector is near nothing
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
