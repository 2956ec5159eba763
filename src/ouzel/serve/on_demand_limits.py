"""Reads the limits of models that come and go, and plans the memory of a model."""

from dataclasses import dataclass

from ouzel.config import EngineConfig
from ouzel.lifecycle.turns import Limits
from ouzel.machine.free_memory import available_bytes
from ouzel.options.options import Options
from ouzel.serve.measuring import ModelSize

_DEFAULT_MAX_LOADED = 3
# An engine's process has Python, OpenVINO, compiled graphs and buffers of a step beside its weights
# and caches.
_PROCESS_BYTES = 360 * 2**20
_WEIGHTS_IN_MEMORY = 1.05  # some weights are rearranged beside the file from which they are mapped
_MAX_WEIGHTS_SHARE = 0.75  # part of one model's memory
_DEFAULT_MEMORY_SHARE = 0.8  # part of the memory that is free at the start


def read_limits(options: Options) -> Limits:
    """Returns the limits of the models in memory.

    A model that is alone has all the memory, as without `--load-on-request`.
    """
    models = options.models
    is_alone = len(options.all_models) == 1 and not models.models_dir
    if is_alone and models.models_memory_gib is None and models.max_loaded_models is None:
        return Limits()
    max_loaded = models.max_loaded_models or max(_DEFAULT_MAX_LOADED, len(options.all_models))
    if models.models_memory_gib is not None:
        return Limits(max_loaded, int(models.models_memory_gib * 2**30))
    return Limits(max_loaded, int(available_bytes() * _DEFAULT_MEMORY_SHARE))


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one model in bytes."""

    num_bytes: int  # upper limit of all its memory
    share_bytes: int  # memory that its engines may divide between weights and caches


def plan_memory(limits: Limits, size: ModelSize, engine: EngineConfig) -> MemoryPlan:
    """Plans the memory of a model: its part of the limit, or all if its weights are too large.

    The caches take at most half of the memory beside the weights: the KV cache 40 %, the states
    of recurrent layers 10 %.
    """
    total = available_bytes() if limits.max_bytes is None else limits.max_bytes
    num_engines = engine.replicas
    weights = size.weight_bytes * num_engines
    share = total // (limits.max_loaded or 1)
    if weights > share * _MAX_WEIGHTS_SHARE:
        share = total
    caches = size.cache_bytes * num_engines
    if engine.kv_cache_gib is None:
        caches = min(caches, max(share - weights, 0) // 2)
    num_bytes = int(weights * _WEIGHTS_IN_MEMORY) + caches + _PROCESS_BYTES * num_engines
    return MemoryPlan(num_bytes, share)
