"""Models whose attention has a soft cap, which only Ouzel's own kernels compute.

The runtime's attention has no input for it. The kernels compute it in every precision, over caches
in f16 and u8, and in f32 if the graph computes in f32.
"""

from collections.abc import Iterable

from ouzel.backends.openvino.graph.attention import read_softcap_note
from ouzel.backends.openvino.kernels.attention import (
    F16_CACHE,
    F32_CACHE,
    PLUGIN_ATTENTION,
    U8_CACHE,
)
from ouzel.backends.openvino.kernels.library import KernelsMissing, find_kernels
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig
from ouzel.errors import ModelLoadError

_CACHES = {"f16": F16_CACHE, "u8": U8_CACHE, "f32": F32_CACHE}


def refuse_without_kernels(softcap: float) -> None:
    """Raises ModelLoadError if there is a soft cap, and the kernels cannot run here."""
    found = find_kernels()
    if softcap and isinstance(found, KernelsMissing):
        raise ModelLoadError(
            f"config.json: attn_logit_softcapping is {softcap:g}, and only ouzel-kernels compute "
            f"attention with a soft cap: {found.reason}. This model needs the package "
            "ouzel-kernels and a CPU with AVX2"
        )


def find_softcap(graphs: Iterable[ov.Model]) -> float:
    """Returns the soft cap of an attention that is not the kernels' yet, 0 if none has one."""
    softcaps = (
        read_softcap_note(node)
        for graph in graphs
        for node in graph.get_ops()
        if node.get_type_name() == PLUGIN_ATTENTION
    )
    return max(softcaps, default=0.0)


def softcap_cache_type(engine: EngineConfig, *, is_u8_by_itself: bool) -> ov.Type:
    """Returns the type of the cache for attention with a soft cap.

    Raises ModelLoadError for options with which the kernels do not compute it.
    """
    if engine.device != "CPU":
        raise ModelLoadError(
            "device must be CPU, because the attention of this model has a soft cap, given "
            f"{engine.device}"
        )
    if engine.kv_cache_dtype == "auto":
        return U8_CACHE if is_u8_by_itself else F16_CACHE
    cache_type = _CACHES.get(engine.kv_cache_dtype)
    if cache_type is None:
        raise ModelLoadError(
            "kv_cache_dtype must be auto, f16, u8, or f32 with precision f32, because the "
            f"attention of this model has a soft cap, given {engine.kv_cache_dtype}"
        )
    return cache_type


def check_softcaps(fused: Iterable[ov.Model]) -> None:
    """Raises ModelLoadError if the runtime would compute an attention with a soft cap."""
    if find_softcap(fused):
        raise ModelLoadError(
            "the attention of this model has a soft cap, which ouzel-kernels compute only if "
            "head_dim is a multiple of 32 and at most 512"
        )
