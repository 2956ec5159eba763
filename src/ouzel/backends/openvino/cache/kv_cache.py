"""Plans and holds the paged KV cache; the memory decides the number of its blocks.

The tensors are the compiled model's inputs `key_cache.N` and `value_cache.N`. Dimension 0 is the
number of blocks, dimension 2 of value_cache the block size. A model of recurrent layers only has no
tensors: its blocks take no memory, and only tell where the states of prompts may be kept.
"""

import logging
from collections.abc import Container, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.kernels.attention import OWN_NAMES, unpack_keys, unpack_values
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import memory_error
from ouzel.backends.openvino.runners.tables import Table, allocate, find_tables
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)

KEY_PREFIX = "key_cache."
DEFAULT_MEMORY_SHARE = 0.4  # share of the free memory
CPU_BLOCK_SIZE = 32  # tokens of a block on a CPU
MOST_EMPTY_BLOCKS = 2**18  # most blocks of a model without attention: 8 million tokens


@dataclass(frozen=True)
class CachePlan:
    num_blocks: int
    block_size: int  # tokens
    max_model_len: int  # tokens; less than the context if the cache holds less


def cache_tables(compiled: Iterable[ov.CompiledModel]) -> list[Table]:
    """Returns the tables of the KV cache in all graphs of a model; none if no layer is
    attention.

    A draft head reads tables of the model. Raises ModelLoadError if it expects another form.
    """
    tables: dict[str, Table] = {}
    for each in compiled:
        for table in find_tables(each, KEY_PREFIX, "value_cache."):
            if tables.setdefault(table.name, table) != table:
                raise ModelLoadError(
                    f"draft_model: cannot read the model's {table.name}: it expects {table}, and "
                    f"the model has {tables[table.name]}"
                )
    return list(tables.values())


def context_length(
    option: int | None, max_positions: int, default_positions: int | None = None
) -> int:
    """Returns the tokens of the longest request: the user's option, else `default_positions`.

    Without `default_positions` it is `max_positions`. Raises ModelLoadError if the option is above
    `max_positions`.
    """
    if option is not None and option > max_positions:
        raise ModelLoadError(
            f"max_model_len must be <= {max_positions}, the model's own limit, given {option}"
        )
    return option or default_positions or max_positions


def accept_shorter_context(option: int | None, max_model_len: int, longest: int) -> None:
    """Logs that the model's own context shrinks to the `longest` request that the cache holds.

    Raises ModelLoadError if the user named the context.
    """
    if option is not None:
        raise ModelLoadError(
            f"max_model_len must be <= {longest}, the tokens of the KV cache, given {option}"
        )
    logger.warning(
        "max_model_len is %d instead of %d: the KV cache holds no more", longest, max_model_len
    )


def plan_cache(
    tables: list[Table],
    max_model_len: int,
    max_num_seqs: int,
    kv_cache_gib: float | None,
    free_bytes: int,
) -> CachePlan:
    """Plans the number of blocks: enough for `max_num_seqs` requests of full length, if they fit.

    `kv_cache_gib` sets the memory instead. Raises ModelLoadError if the memory does not hold two
    blocks.
    """
    block_size = find_block_size(tables)
    block_bytes = sum(table.row_bytes for table in tables)
    useful_blocks = max_num_seqs * -(-max_model_len // block_size)
    if not tables:
        logger.info("no KV cache: the model has no attention")
        return make_plan(tables, max_model_len, max(2, min(useful_blocks, MOST_EMPTY_BLOCKS)))
    num_blocks = cache_bytes(kv_cache_gib, free_bytes) // block_bytes
    if kv_cache_gib is None:
        num_blocks = min(useful_blocks, num_blocks)
    if num_blocks < 2:
        found = "the memory left is less"
        if kv_cache_gib is not None:
            found = f"kv_cache_gib is {kv_cache_gib}"
        raise ModelLoadError(
            f"the KV cache needs at least {2 * block_bytes / 2**30:.4f} GiB (two blocks of "
            f"{block_size} tokens), {found}"
        )
    logger.info(
        "KV cache: %d blocks of %d tokens, %.2f GiB",
        num_blocks,
        block_size,
        num_blocks * block_bytes / 2**30,
    )
    return make_plan(tables, max_model_len, num_blocks)


def cache_bytes(kv_cache_gib: float | None, free_bytes: int) -> int:
    """Returns the bytes that the cache may take: the option, or a share of the free memory."""
    if kv_cache_gib is None:
        return int(free_bytes * DEFAULT_MEMORY_SHARE)
    return int(kv_cache_gib * 2**30)


def make_plan(tables: list[Table], max_model_len: int, num_blocks: int) -> CachePlan:
    """Returns the plan with this number of blocks, and a context that they can hold."""
    block_size = find_block_size(tables)
    return CachePlan(num_blocks, block_size, min(max_model_len, num_blocks * block_size))


def find_block_size(tables: list[Table]) -> int:
    """Returns the tokens of a block."""
    sizes = (table.row_shape[1] for table in tables if table.name.startswith("value_cache."))
    return next(sizes, CPU_BLOCK_SIZE)


class KvCache:
    """The tensors of the KV cache of all layers; block ids index their first dimension."""

    def __init__(self, tables: list[Table], num_blocks: int) -> None:
        self.block_size = find_block_size(tables)
        try:
            self.tensors = allocate(tables, num_blocks)
        except RuntimeError as error:
            num_bytes = num_blocks * sum(table.row_bytes for table in tables)
            raise memory_error("kv_cache_gib", num_bytes) from error

    def read_keys(self, num_tokens: int) -> dict[str, NDArray[np.float32]]:
        """Returns the first keys of each layer, [heads, tokens, channels], from a cache of
        floats.
        """
        return {
            name: self._read(name, tensor, num_tokens)
            for name, tensor in self.tensors.items()
            if name.startswith(KEY_PREFIX)
        }

    def largest(self, num_tokens: int, names: Container[str]) -> float:
        """Returns the largest absolute key or value of the first tokens, from a cache of floats.

        Returns infinity if some value is not a number. `names` are the tensors to read.
        """
        with np.errstate(invalid="ignore"):
            read = (
                self._read(name, tensor, num_tokens)
                for name, tensor in self.tensors.items()
                if name in names
            )
            return max(float(np.nan_to_num(np.abs(values), nan=np.inf).max()) for values in read)

    def _read(self, name: str, tensor: ov.Tensor, num_tokens: int) -> NDArray[np.float32]:
        """Returns the first tokens in the first blocks, [heads, tokens, channels]."""
        blocks = read_floats(name, tensor, -(-num_tokens // self.block_size))
        heads = blocks.transpose(1, 0, 2, 3)
        return heads.reshape(heads.shape[0], -1, heads.shape[3])[:, :num_tokens]

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole blocks; the scales of quantised keys and values lie inside the blocks."""
        for tensor in self.tensors.values():
            blocks = tensor.data
            blocks[destinations] = blocks[sources]


def read_floats(name: str, tensor: ov.Tensor, num_blocks: int) -> NDArray[np.float32]:
    """Returns a copy of the first blocks of a tensor in f32.

    numpy has no bf16: openvino shows bf16 values as another type of 16 bits.
    """
    if tensor.element_type in OWN_NAMES:
        unpack = unpack_keys if name.startswith(KEY_PREFIX) else unpack_values
        return unpack(tensor.data[:num_blocks])
    if tensor.element_type == ov.Type.bf16:
        widened: NDArray[np.uint32] = (
            tensor.data[:num_blocks].view(np.uint16).astype(np.uint32) << 16
        )
        return widened.view(np.float32)
    floats: NDArray[np.float32] = tensor.data[:num_blocks].astype(np.float32)
    return floats
