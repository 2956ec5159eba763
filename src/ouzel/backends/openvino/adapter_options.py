"""What the options leave open about adapters is read off the ones that are given."""

from pathlib import Path

from ouzel.backends.openvino.adapter_files import read_config
from ouzel.config import ModelConfig
from ouzel.config.adapters import read_adapters

_LEAST_RANK = 16  # of adapters that may come later


def num_adapters(model: ModelConfig) -> int:
    """Returns how many can be loaded at a time."""
    return len(model.lora) if model.max_loras is None else model.max_loras


def max_rank(model: ModelConfig) -> int:
    """Returns the largest rank that an adapter may have; 0 where there is to be none. Raises ModelLoadError."""
    if not num_adapters(model):
        return 0
    if model.max_lora_rank is not None:
        return model.max_lora_rank
    return max([_LEAST_RANK, *(read_config(Path(path)).max_rank for path in read_adapters(model.lora).values())])
