"""Runs the kernels' attention without a graph, on a small KV cache, and computes it in numpy.

kernels/src/context.h describes the two types of cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.kernels.attention import unpack_keys, unpack_values
from tests.kernels.library import Floats, load

BLOCK_TOKENS = 32
LINE = 32  # channels of a token that share a scale and a zero point in u8
UNWRITTEN = 0x7E  # two of these bytes are a NaN in f16


CacheName = Literal["f16", "u8", "f32"]
CACHES: tuple[CacheName, ...] = ("f16", "u8", "f32")


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The sizes of an attention."""

    num_heads: int
    num_kv_heads: int
    size: int
    window: int = 0
    sinks: Floats | None = None
    softcap: float = 0.0  # 0: products stay
    cache: CacheName = "f16"

    @property
    def scale(self) -> float:
        return float(self.size**-0.5)


@dataclass
class Context:
    """A sequence: its keys and values so far, [tokens, heads, size], and its blocks."""

    block_ids: list[int]
    keys: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class NewRows:
    """The queries [rows, heads, size], keys and values [rows, kv heads, size] of a sequence."""

    queries: Floats
    keys: Floats
    values: Floats

    def __getitem__(self, rows: slice) -> "NewRows":
        return NewRows(self.queries[rows], self.keys[rows], self.values[rows])

    def __len__(self) -> int:
        return len(self.queries)


class Refused(Exception):
    """The library answers with a status that is not 0."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Cache:
    """The KV cache of a layer. Bytes that were never written are UNWRITTEN."""

    def __init__(self, heads: Heads, num_blocks: int) -> None:
        self.heads = heads
        token_bytes = {"f16": 2, "u8": 35 / LINE, "f32": 4}[heads.cache] * heads.size
        shape = (num_blocks, heads.num_kv_heads, BLOCK_TOKENS, int(token_bytes))
        self.keys, self.values = (np.full(shape, UNWRITTEN, np.uint8) for _ in range(2))

    def attend(
        self,
        level: str,
        work: Sequence[tuple[Context, NewRows]],
        *,
        num_spare_rows: int = 0,
        writes: bool = True,
        two_way_begins: Sequence[int] | None = None,
    ) -> Floats:
        """Computes the new rows of some sequences; returns [rows, heads, size].

        Rows that belong to no sequence follow after them. `two_way_begins` has a number for each
        row of the sequences. Raises Refused.
        """
        heads = self.heads
        counts, tables = [len(rows) for _, rows in work], [each.block_ids for each, _ in work]
        begins, block_begins = (
            np.cumsum([0, *lengths]).astype(np.int32) for lengths in (counts, map(len, tables))
        )
        past = np.array([context.num_tokens for context, _ in work], np.int32)
        past -= 0 if writes else np.array(counts, np.int32)
        block_ids = np.concatenate(tables).astype(np.int32)
        queries, keys, values = (
            np.ascontiguousarray(
                np.pad(np.concatenate(arrays), ((0, num_spare_rows), (0, 0), (0, 0)))
            )
            for arrays in (
                [rows.queries for _, rows in work],
                [rows.keys for _, rows in work],
                [rows.values for _, rows in work],
            )
        )
        two_way = None
        if two_way_begins is not None:
            two_way = np.array([*two_way_begins, *[-1] * num_spare_rows], np.int32)
            assert len(two_way) == len(queries)
        attended = np.full(queries.shape, np.nan, np.float32)
        status = load().ouzel_kernels_attend(
            *(level.encode(), heads.num_heads, heads.num_kv_heads, heads.size),
            *(heads.scale, heads.softcap, heads.window),
            *(None if heads.sinks is None else heads.sinks.ctypes.data, CACHES.index(heads.cache)),
            *(writes, len(work), begins.ctypes.data, past.ctypes.data, block_ids.ctypes.data),
            *(block_begins.ctypes.data, len(self.keys), self.keys.ctypes.data),
            *(self.values.ctypes.data, len(queries), queries.ctypes.data, keys.ctypes.data),
            *(values.ctypes.data, None if two_way is None else two_way.ctypes.data),
            attended.ctypes.data,
        )
        if status:
            raise Refused(status)
        if writes:
            for context, rows in work:
                context.keys.extend(rows.keys)
                context.values.extend(rows.values)
        return attended

    def read(self, context: Context) -> tuple[Floats, Floats]:
        """Returns the keys and values of a sequence in a cache of floats, [tokens, heads, size]."""
        if self.heads.cache == "f16":
            keys, values = unpack_keys(self.keys.view(np.int8)), self.values.view(np.int8)
        else:
            keys, values = unpack_keys(self.keys.view(np.int32)), self.values.view(np.int32)
        return self._join(keys, context), self._join(unpack_values(values), context)

    def _join(self, blocks: Floats, context: Context) -> Floats:
        """Joins the blocks of a sequence, which are [blocks, heads, tokens, size]."""
        by_token = blocks[context.block_ids].transpose(0, 2, 1, 3)
        rows = by_token.reshape(-1, self.heads.num_kv_heads, self.heads.size)
        return rows[: context.num_tokens]


def attend_in_float64(
    heads: Heads, context: Context, queries: Floats, two_way: range = range(0)
) -> NDArray[np.float64]:
    """Computes the attention of the last tokens of a sequence from its rounded keys and values.

    The tokens `two_way` see each other.
    """
    keys, values = (
        np.repeat(round_tokens(heads, np.array(each)), group(heads), axis=1)
        for each in (context.keys, context.values)
    )
    first = context.num_tokens - len(queries)
    # Products of matrices take a third of the time of einsum.
    by_head = queries.astype(np.float64).transpose(1, 0, 2)
    products = by_head @ keys.transpose(1, 2, 0) * heads.scale
    if heads.softcap:
        products = heads.softcap * np.tanh(products / heads.softcap)
    token, row = np.arange(context.num_tokens), first + np.arange(len(queries))[:, None]
    is_seen = (token <= row) & ((token > row - heads.window) | (heads.window == 0))
    is_seen |= np.isin(token, two_way) & np.isin(row, two_way)
    weights = np.exp(products - products.max()) * is_seen
    total = weights.sum(axis=2)
    if heads.sinks is not None:
        total += np.exp(heads.sinks.astype(np.float64)[:, None] - products.max())
    attended: NDArray[np.float64] = weights / total[:, :, None] @ values.transpose(1, 0, 2)
    return attended.transpose(1, 0, 2)


def round_tokens(heads: Heads, tokens: Floats) -> NDArray[np.float64]:
    """Rounds keys or values [tokens, heads, size] as the cache does."""
    if heads.cache == "f32":
        return tokens.astype(np.float64)
    if heads.cache == "f16":
        halves: NDArray[np.float64] = tokens.astype(np.float16).astype(np.float64)
        return halves
    lines = tokens.reshape(-1, LINE)
    least, largest = lines.min(axis=1, initial=0), lines.max(axis=1, initial=0)
    exact = (largest - least) / np.float32(255)
    nearest = exact.astype(np.float16)
    scales = np.where(nearest < exact, np.nextafter(nearest, np.float16(np.inf)), nearest)
    inverse = 1 / scales.astype(np.float32)
    zeros = np.rint(-least * inverse)
    rounded = (np.rint(lines * inverse[:, None]) + zeros[:, None]).clip(0, 255) - zeros[:, None]
    products: NDArray[np.float64] = rounded.astype(np.float64) * scales[:, None].astype(np.float64)
    return products.reshape(tokens.shape)


def group(heads: Heads) -> int:
    """Returns the number of query heads that share a head of keys."""
    return heads.num_heads // heads.num_kv_heads


def make_rows(heads: Heads, count: int, random: np.random.Generator) -> NewRows:
    shapes = [(count, number, heads.size) for number in (heads.num_heads, heads.num_kv_heads)]
    return NewRows(*(random.standard_normal(shapes[i]).astype(np.float32) for i in (0, 1, 1)))
