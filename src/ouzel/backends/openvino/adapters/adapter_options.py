"""Derives the limits of adapters from the adapters on the command line."""

from pathlib import Path

from ouzel.backends.openvino.adapters.adapter_config import read_config
from ouzel.backends.openvino.adapters.adapter_tensors import AdapterTensors
from ouzel.backends.openvino.graph.adapter_shape import (
    NO_ADAPTERS,
    AdapterLimits,
    AdapterShape,
)
from ouzel.config import ModelConfig
from ouzel.config.adapters import read_adapters
from ouzel.errors import ModelLoadError

_LEAST_RANK = 16  # rank for adapters that may be loaded later


def num_adapters(model: ModelConfig) -> int:
    """Returns the number of adapters that can be loaded at a time."""
    return len(model.lora) if model.max_loras is None else model.max_loras


def max_rank(model: ModelConfig) -> int:
    """Returns the largest rank that an adapter may have, 0 if the model takes no adapters.

    Raises ModelLoadError if an adapter cannot be read.
    """
    if not num_adapters(model):
        return 0
    if model.max_lora_rank is not None:
        return model.max_lora_rank
    ranks = [read_config(Path(path)).max_rank for path in read_adapters(model.lora).values()]
    return max([_LEAST_RANK, *ranks])


def read_limits(model: ModelConfig) -> AdapterLimits:
    """Returns the limits of the adapters that the model's graph is made for.

    The graph has the parts that the named adapters have, and the parts that the option names.
    Raises ModelLoadError if an adapter cannot be read.
    """
    rank = max_rank(model)
    if not rank:
        return NO_ADAPTERS
    parts = set(model.lora_parts)
    for path in read_adapters(model.lora).values():
        parts |= AdapterTensors(Path(path)).find_parts()
    return AdapterLimits(rank, frozenset(parts))


def subtract_adapter_bytes(shape: AdapterShape | None, model: ModelConfig, free_bytes: int) -> int:
    """Returns the free memory without the memory for all adapters that may be loaded.

    Raises ModelLoadError if the adapters take more than the free memory.
    """
    if shape is None:
        return free_bytes
    count = num_adapters(model)
    num_bytes = count * shape.slot_bytes
    if num_bytes > free_bytes:
        raise ModelLoadError(
            f"max_loras, max_lora_rank: {count} adapters of rank {shape.rank} take "
            f"{num_bytes / 2**30:.2f} GiB, {free_bytes / 2**30:.2f} GiB are free"
        )
    return free_bytes - num_bytes
