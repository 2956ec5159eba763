"""What the options leave open about adapters is read off the ones that are given."""

from pathlib import Path

from ouzel.backends.openvino.adapters.adapter_files import read_config
from ouzel.backends.openvino.graph.adapter_shape import AdapterShape
from ouzel.config import ModelConfig
from ouzel.config.adapters import read_adapters
from ouzel.errors import ModelLoadError

_LEAST_RANK = 16  # of adapters that may come later


def num_adapters(model: ModelConfig) -> int:
    """Returns how many can be loaded at a time."""
    return len(model.lora) if model.max_loras is None else model.max_loras


def max_rank(model: ModelConfig) -> int:
    """Returns the largest rank that an adapter may have; 0 where there is to be none. Raises
    ModelLoadError.
    """
    if not num_adapters(model):
        return 0
    if model.max_lora_rank is not None:
        return model.max_lora_rank
    return max(
        [
            _LEAST_RANK,
            *(read_config(Path(path)).max_rank for path in read_adapters(model.lora).values()),
        ]
    )


def left_by_adapters(shape: AdapterShape | None, model: ModelConfig, free_bytes: int) -> int:
    """Returns how much is free beside all adapters that may come. Raises ModelLoadError where they
    take more.
    """
    if shape is None:
        return free_bytes
    count = num_adapters(model)
    num_bytes = count * shape.slot_bytes
    if num_bytes > free_bytes:
        raise ModelLoadError(
            f"max_loras, max_lora_rank: {count} adapters of rank {shape.rank} take "
            f"{num_bytes / 2**30:.2f} GiB, "
            f"{free_bytes / 2**30:.2f} are free"
        )
    return free_bytes - num_bytes
