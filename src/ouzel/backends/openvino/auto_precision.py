"""Decides the precision that `--precision auto` stands for on this CPU (docs/decisions/0044).

OpenVINO takes bf16 on each CPU that has instructions for it. Without AMX the plugin still
multiplies compressed weights by activations in int8, and bf16 then rounds everything else without
any gain in speed.
"""

import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from ouzel.backends.openvino.compilation import capabilities, compile_properties, is_compressed
from ouzel.backends.openvino.kernels.usage import has_mostly_packed
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.withheld_instructions import withholds_amx
from ouzel.config import EngineConfig
from ouzel.machine.instructions import processor_flags

_INT8 = {"avx512_vnni", "avx_vnni"}
_AMX = {"amx_bf16", "amx_int8"}


def resolve_auto_precision(
    core: ov.Core, engine: EngineConfig, model: LanguageModel
) -> EngineConfig:
    """Returns the options with `int8` in place of `auto` if int8 rounds less than bf16 and is as
    fast.

    This is so if most weights are integers that the plugin multiplies by int8 activations, and the
    CPU is an x86 with instructions for int8 and bf16 but without AMX. A KV cache in bf16 needs
    bf16. Latent attention keeps bf16: its heads are so large that products in f32 took 1.1 to 1.3
    times as long in steps of 1 and 8 tokens.

    A model of mostly packed matrices takes int8 also with AMX: Ouzel's own kernels multiply them,
    by int8 rows or in bf16 as the number of rows demands.

    A deterministic engine takes int8 also with AMX and for latent attention: where AMX computes a
    product in bf16, its bits depend on the number of rows.
    """
    if engine.precision != "auto" or engine.device != "CPU" or engine.kv_cache_dtype == "bf16":
        return engine
    if "BF16" not in capabilities(core, engine.device):
        return engine
    has_own_kernels = has_mostly_packed(model.graphs)
    may_use_amx = not (withholds_amx() or engine.deterministic or has_own_kernels)
    if not prefers_int8(processor_flags(), may_use_amx=may_use_amx):
        return engine
    quantises_activations = (
        compile_properties(engine, model)["DYNAMIC_QUANTIZATION_GROUP_SIZE"] != 0
    )
    if not (quantises_activations and has_mostly_integers(model.graphs)):
        return engine
    if has_latent_attention(model.graph) and not engine.deterministic:
        return engine
    return msgspec.structs.replace(engine, precision="int8")


def prefers_int8(flags: AbstractSet[str], *, may_use_amx: bool) -> bool:
    """Tells whether int8 suits a processor with these flags, spelled as Linux spells them.

    Other systems give no flags, and the answer is no.
    """
    has_amx = may_use_amx and not flags.isdisjoint(_AMX)
    return not flags.isdisjoint(_INT8) and not has_amx


def has_latent_attention(graph: ov.Model) -> bool:
    """Tells whether some keys are longer than their values.

    In latent attention a key is the latent value and a rotated part after it.
    """
    nodes = (node for node in graph.get_ops() if node.get_type_name() == "PagedAttentionExtension")
    sizes = (
        [node.get_rt_info()[f"{kind}_head_size"].astype(int) for kind in ("k", "v")]
        for node in nodes
    )
    return any(key > value for key, value in sizes)


def has_mostly_integers(graphs: Sequence[ov.Model]) -> bool:
    """Tells whether the graphs have more weights in integers than in other types."""
    sizes: Counter[bool] = Counter()
    for graph in graphs:
        for node in graph.get_ops():
            if node.get_type_name() == "Constant":
                sizes[is_compressed(node)] += math.prod(node.get_output_shape(0))
    return sizes[True] > sizes[False]
