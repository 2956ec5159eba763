"""The KV cache is paged: memory decides how many blocks there are, and tensors hold them.

They are the compiled model's inputs `key_cache.N` and `value_cache.N` (dimension 0 is the number of
blocks, dimension 2 of value_cache the block size).
"""

import logging
from collections.abc import Container, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.memory import memory_error
from ouzel.backends.openvino.runners.tables import Table, allocate, tables_of
from ouzel.errors import ModelLoadError

logger = logging.getLogger(__name__)

KEY_PREFIX = "key_cache."
DEFAULT_MEMORY_SHARE = 0.4  # of the free memory


@dataclass(frozen=True)
class CachePlan:
    num_blocks: int
    block_size: int  # tokens
    max_model_len: int  # what was asked for, or less when the cache holds less


def cache_tables(compiled: Iterable[ov.CompiledModel]) -> list[Table]:
    """Returns those of all graphs of a model."""
    tables = [table for each in compiled for table in tables_of(each, KEY_PREFIX, "value_cache.")]
    if not tables:
        raise ModelLoadError(
            "a model of recurrent layers only is not supported: one at least must be attention"
        )
    return tables


def context_length(
    asked: int | None, max_positions: int, default_positions: int | None = None
) -> int:
    """Returns the tokens of the longest request; `default_positions` counts unless the user asked
    for a length.
    """
    if asked is not None and asked > max_positions:
        raise ModelLoadError(
            f"max_model_len must be <= {max_positions}, the model's own limit, given {asked}"
        )
    return asked or default_positions or max_positions


def accept_shorter_context(option: int | None, max_model_len: int, longest: int) -> None:
    """The model's own context may shrink to what the cache holds; one that the user named may not."""
    if option is not None:
        raise ModelLoadError(
            f"max_model_len must be <= {longest}, which the KV cache holds, given {option}"
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
    """Raises ModelLoadError where what is asked for, or a share of what is free, does not hold two
    blocks.
    """
    block_size = block_size_of(tables)
    block_bytes = sum(table.row_bytes for table in tables)
    wanted = max_num_seqs * -(-max_model_len // block_size)
    num_blocks = cache_bytes(kv_cache_gib, free_bytes) // block_bytes
    if kv_cache_gib is None:
        num_blocks = min(wanted, num_blocks)
    if num_blocks < 2:
        raise ModelLoadError(
            f"the KV cache needs at least {2 * block_bytes / 2**30:.4f} GiB (two blocks of "
            f"{block_size} tokens), "
            + (
                f"kv_cache_gib is {kv_cache_gib}"
                if kv_cache_gib is not None
                else "the memory left is less"
            )
        )
    logger.info(
        "KV cache: %d blocks of %d tokens, %.2f GiB",
        num_blocks,
        block_size,
        num_blocks * block_bytes / 2**30,
    )
    return plan_of(tables, max_model_len, num_blocks)


def cache_bytes(kv_cache_gib: float | None, free_bytes: int) -> int:
    """Returns the bytes that the cache may take: the option, or a share of the free memory."""
    return (
        int(free_bytes * DEFAULT_MEMORY_SHARE)
        if kv_cache_gib is None
        else int(kv_cache_gib * 2**30)
    )


def plan_of(tables: list[Table], max_model_len: int, num_blocks: int) -> CachePlan:
    block_size = block_size_of(tables)
    return CachePlan(num_blocks, block_size, min(max_model_len, num_blocks * block_size))


def block_size_of(tables: list[Table]) -> int:
    """Returns the tokens of a block."""
    return next(table.row_shape[1] for table in tables if table.name.startswith("value_cache."))


class KvCache:
    """It holds the tensors of all layers; block ids index their first dimension."""

    def __init__(self, tables: list[Table], num_blocks: int) -> None:
        self.block_size = block_size_of(tables)
        try:
            self.tensors = allocate(tables, num_blocks)
        except RuntimeError as error:
            num_bytes = num_blocks * sum(table.row_bytes for table in tables)
            raise memory_error("kv_cache_gib", num_bytes) from error

    def read_keys(self, num_tokens: int) -> dict[str, NDArray[np.float32]]:
        """Returns [heads, tokens, channels] of each layer, of a cache that holds floats."""
        return {
            name: self._read(tensor, num_tokens)
            for name, tensor in self.tensors.items()
            if name.startswith(KEY_PREFIX)
        }

    def largest(self, num_tokens: int, names: Container[str]) -> float:
        """Returns the largest absolute key or value of the first tokens, of a cache that holds
        floats; infinity where one of them is no number. `names` are the tensors to read.
        """
        with np.errstate(invalid="ignore"):
            read = (
                self._read(tensor, num_tokens)
                for name, tensor in self.tensors.items()
                if name in names
            )
            return max(float(np.nan_to_num(np.abs(values), nan=np.inf).max()) for values in read)

    def _read(self, tensor: ov.Tensor, num_tokens: int) -> NDArray[np.float32]:
        """Returns [heads, tokens, channels] of the first tokens in the first blocks."""
        blocks = read_floats(tensor, -(-num_tokens // self.block_size))
        heads = blocks.transpose(1, 0, 2, 3)
        return heads.reshape(heads.shape[0], -1, heads.shape[3])[:, :num_tokens]

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole blocks only: the scales of quantised keys and values lie inside them."""
        for tensor in self.tensors.values():
            blocks = tensor.data
            blocks[destinations] = blocks[sources]


def read_floats(tensor: ov.Tensor, num_blocks: int) -> NDArray[np.float32]:
    """Returns a copy of the first blocks in f32.

    numpy has no bf16, and openvino shows it as another type of 16 bits.
    """
    if tensor.element_type == ov.Type.bf16:
        widened: NDArray[np.uint32] = (
            tensor.data[:num_blocks].view(np.uint16).astype(np.uint32) << 16
        )
        return widened.view(np.float32)
    floats: NDArray[np.float32] = tensor.data[:num_blocks].astype(np.float32)
    return floats
