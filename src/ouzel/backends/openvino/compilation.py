"""Compiles graphs with the user's options; errors name the options at fault."""

from collections.abc import Iterable, Sequence
from itertools import chain

from ouzel.backends.openvino.graph.product_factors import move_factors
from ouzel.backends.openvino.kernels.attention import F16_CACHE, U8_CACHE
from ouzel.backends.openvino.kernels.fusion import copy_fused
from ouzel.backends.openvino.kernels.library import uses_kernels
from ouzel.backends.openvino.kernels.softcap import (
    check_softcaps,
    find_softcap,
    refuse_without_kernels,
    softcap_cache_type,
)
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.one_thread import keep_gates_apart
from ouzel.backends.openvino.withheld_instructions import withholds_bf16, withholds_int8
from ouzel.config import EngineConfig
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

_TYPES = {
    "u8": ov.Type.u8,
    "bf16": ov.Type.bf16,
    "f16": ov.Type.f16,
    "f32": ov.Type.f32,
    "int8": ov.Type.f32,
}
_COMPRESSED = {"u8", "i8", "u4", "i4"}
_CAPABILITIES = {"bf16": "BF16", "f16": "FP16"}

# In a graph in f32 the plugin quantises activations to int8, in groups of this many channels, to
# use the integer instructions. The plugin's own value is 32; 64 makes a prefill and a step with 32
# sequences a sixth faster and moves the logits of the demo model by 2.2 % instead of 2.0 % (128: a
# fifth faster, 2.5 %). A group must fit into the smallest matrix: otherwise steps with one and with
# several sequences take different paths, and their logits differ by percents. A group must also fit
# into the groups of the weights: with activation groups of 64 and weight groups of 32, products of
# 8 rows take 2.4 times as long.
ACTIVATION_GROUP_SIZES = (64, 32)
# The smaller group takes an encoder 1.12 times as long, and the int8 vectors of all-MiniLM-L6-v2
# then have cosines above 0.999 to the f32 vectors, for all of 71 short texts. The least cosine with
# groups of 64 is 0.998.
_ENCODER_GROUP_SIZES = (32,)

# The plugin quantises the keys of a u8 cache by token, in groups of this many channels. Its
# default, by channel over the tokens of a block, writes a partly filled block anew with every
# token. The cached keys would then depend on how the prompt was cut into chunks and on rejected
# proposals (docs/decisions/0013-kv-cache-quantisation.md).
KEY_GROUP_SIZE = 32

# The plugin caches the code that it generates for each number of rows: up to 5000 entries by
# default, about ten for each number. With requests of many lengths that memory grows for hours (the
# demo model: 400 MB after 600 requests). With 512 entries it ends at 290 MB, and steps are as fast;
# with 64 or none steps take a fifth longer.
NUM_KEPT_PRIMITIVES = 512


def fuse_graphs(
    core: ov.Core, language_model: LanguageModel, engine: EngineConfig, *, attends: bool = True
) -> list[ov.Model]:
    """Returns the graphs that are compiled: copies with the operations of Ouzel's own kernels.

    Without `attends` attention stays with the runtime, unless it has a soft cap. Key scales may
    still change the model's own graphs. Raises ModelLoadError if nothing computes a soft cap.
    """
    for graph in language_model.graphs:
        move_factors(graph)
    cache_type = own_cache_type(core, engine) if attends else None
    if softcap := find_softcap(language_model.graphs):
        refuse_without_kernels(softcap)
        is_u8 = is_u8_by_itself(core, engine)
        cache_type = softcap_cache_type(engine, is_u8_by_itself=is_u8)
    may_be_wide = not engine.deterministic
    fused = [
        copy_fused(graph, cache_type=cache_type, may_be_wide=may_be_wide)
        for graph in language_model.graphs
    ]
    check_softcaps(fused)
    return fused


def compile_graphs(
    core: ov.Core, fused: Sequence[ov.Model], language_model: LanguageModel, engine: EngineConfig
) -> list[ov.CompiledModel]:
    """Compiles the model's graph and, if the model predicts further tokens, its prediction layer
    and its head, as `fuse_graphs` returned them.
    """
    return _compile(core, fused, engine, compile_properties(engine, language_model), "the model")


def can_attend(core: ov.Core, engine: EngineConfig) -> bool:
    """Tells whether the kernels compute attention over an f16 or a u8 cache: in a graph in f32."""
    return uses_kernels(engine) and expected_type(core, engine) == ov.Type.f32


def own_cache_type(core: ov.Core, engine: EngineConfig) -> ov.Type | None:
    """Returns the type of the cache if the kernels compute attention, else None."""
    if not can_attend(core, engine):
        return None
    if engine.kv_cache_dtype == "f16":
        return F16_CACHE
    is_u8 = engine.kv_cache_dtype == "u8" or is_u8_by_itself(core, engine)
    return U8_CACHE if is_u8 else None


def is_u8_by_itself(core: ov.Core, engine: EngineConfig) -> bool:
    """Tells whether the user names no type, and the runtime would take u8."""
    by_itself = core.get_property(engine.device, "KV_CACHE_PRECISION")
    return engine.kv_cache_dtype == "auto" and by_itself == ov.Type.u8


def compile_media_encoder(
    core: ov.Core, parts: list[ov.Model], engine: EngineConfig, name: str
) -> list[ov.CompiledModel]:
    """Compiles the parts of an encoder of images or sounds; the plugin does not quantise their
    activations. `name` stands for them in logs and errors.
    """
    properties = _shared_properties(engine)
    if engine.device == "CPU":
        properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    return _compile(core, parts, engine, properties, name)


def compile_encoder(
    core: ov.Core, graph: ov.Model, hidden_size: int, engine: EngineConfig
) -> ov.CompiledModel:
    """Compiles the graph of an encoder, a model that reads whole texts."""
    properties = _shared_properties(engine)
    if engine.device == "CPU":
        properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = _activation_group_size(
            engine, hidden_size, [graph], _ENCODER_GROUP_SIZES
        )
    [compiled] = _compile(core, [graph], engine, properties, "the model")
    return compiled


def _compile(
    core: ov.Core,
    graphs: Sequence[ov.Model],
    engine: EngineConfig,
    properties: dict[str, object],
    name: str,
) -> list[ov.CompiledModel]:
    """Compiles the graphs; `name` stands for all of them in logs and errors. Raises
    ModelLoadError.
    """
    num_threads = engine.num_threads
    threads = f" for {num_threads} thread{'s' if num_threads > 1 else ''}" if num_threads else ""
    with stage(f"compiling {name} in {_expected_precision(core, engine)}{threads}"):
        try:
            if engine.device == "CPU":
                for graph in graphs:
                    keep_gates_apart(core, graph, properties)
            return [core.compile_model(graph, engine.device, properties) for graph in graphs]
        except RuntimeError as error:
            raise ModelLoadError(
                f"OpenVINO cannot compile {name} for {engine.device}: {error}"
            ) from error


def _expected_precision(core: ov.Core, engine: EngineConfig) -> str:
    """Returns the precision in which a graph will be compiled.

    For a compiled graph `precision_name` returns it.
    """
    if engine.precision != "auto":
        return engine.precision
    return "bf16" if "BF16" in capabilities(core, engine.device) else "f32"


def expected_type(core: ov.Core, engine: EngineConfig) -> ov.Type:
    """Returns the type in which a graph will compute."""
    return _TYPES[_expected_precision(core, engine)]


def capabilities(core: ov.Core, device: str) -> set[str]:
    """Returns the capabilities that OpenVINO may use on the device, such as `BF16`, spelled by
    OpenVINO.

    Raises RuntimeError if the device is missing.
    """
    found = set(core.get_property(device, "OPTIMIZATION_CAPABILITIES"))
    return found - {"BF16"} if device == "CPU" and withholds_bf16() else found


def check_options(core: ov.Core, engine: EngineConfig) -> None:
    if engine.kv_cache_dtype == "f32" and engine.precision != "f32":
        raise ModelLoadError(f"kv_cache_dtype f32 requires precision f32, given {engine.precision}")
    if engine.kv_cache_dtype == "bf16" and engine.precision in ("f32", "int8"):
        raise ModelLoadError(
            f"kv_cache_dtype bf16 requires precision bf16, given {engine.precision}; f16 and u8 "
            "suit every precision"
        )
    try:
        found = capabilities(core, engine.device)
    except RuntimeError as error:
        devices = ", ".join(core.available_devices)
        raise ModelLoadError(
            f"device {engine.device} is not available; available: {devices}"
        ) from error
    if engine.precision in _CAPABILITIES and _CAPABILITIES[engine.precision] not in found:
        raise ModelLoadError(
            f"precision {engine.precision} is not available on {engine.device}; use auto or f32"
        )


def compile_properties(engine: EngineConfig, language_model: LanguageModel) -> dict[str, object]:
    properties = _shared_properties(engine)
    if engine.device == "CPU":
        group_size = _activation_group_size(
            engine, language_model.hidden_size, language_model.graphs
        )
        properties["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = group_size
        properties |= key_cache_properties(language_model.graphs)
    if engine.kv_cache_dtype != "auto":
        properties["KV_CACHE_PRECISION"] = _TYPES[engine.kv_cache_dtype]
    return properties


def _shared_properties(engine: EngineConfig) -> dict[str, object]:
    """Returns the properties that all graphs of an engine share."""
    properties: dict[str, object] = {"PERFORMANCE_HINT": "LATENCY"}
    if engine.device == "CPU":
        properties["CPU_RUNTIME_CACHE_CAPACITY"] = NUM_KEPT_PRIMITIVES
    if engine.precision != "auto":
        properties["INFERENCE_PRECISION_HINT"] = _TYPES[engine.precision]
    elif engine.device == "CPU" and withholds_bf16():
        properties["INFERENCE_PRECISION_HINT"] = ov.Type.f32
    if engine.num_threads:
        properties["INFERENCE_NUM_THREADS"] = engine.num_threads
    return properties


def _activation_group_size(
    engine: EngineConfig,
    hidden_size: int,
    graphs: Iterable[ov.Model],
    sizes: Sequence[int] = ACTIVATION_GROUP_SIZES,
) -> int:
    """Returns the channels in a group of quantised activations, 0 if activations are not
    quantised.
    """
    if engine.precision == "f32" or withholds_int8():
        return 0
    at_most = min([hidden_size, *chain.from_iterable(map(weight_group_sizes, graphs))])
    return next((size for size in sizes if size <= at_most), 0)


def weight_group_sizes(graph: ov.Model) -> set[int]:
    """Returns the numbers of columns that share a scale, for matrices with several scales in a row.

    Zero points are compressed constants, too; they have one column and are left out.
    """
    compressed = (
        node
        for node in graph.get_ops()
        if node.get_type_name() == "Constant" and is_compressed(node)
    )
    shapes = (tuple(constant.get_output_shape(0)) for constant in compressed)
    return {shape[-1] for shape in shapes if len(shape) > 2 and shape[-1] > 1}


def is_compressed(constant: ov.Node) -> bool:
    return constant.get_output_element_type(0).to_string() in _COMPRESSED


def precision_name(compiled: ov.CompiledModel, engine: EngineConfig) -> str:
    if engine.precision == "int8":
        return "int8"
    return type_name(compiled.get_property("INFERENCE_PRECISION_HINT"))


def key_cache_properties(graphs: Iterable[ov.Model]) -> dict[str, object]:
    """Returns the properties of the key cache. OpenVINO ignores them unless the cache is u8."""
    head_sizes = {
        node.get_rt_info()["k_head_size"].astype(int)
        for node in chain.from_iterable(graph.get_ops() for graph in graphs)
        if node.get_type_name() == "PagedAttentionExtension"
    }
    divides = all(size % KEY_GROUP_SIZE == 0 for size in head_sizes)
    return {
        "KEY_CACHE_QUANT_MODE": "BY_TOKEN",
        "KEY_CACHE_GROUP_SIZE": KEY_GROUP_SIZE if divides else 0,
    }


def type_name(dtype: ov.Type) -> str:
    """Spells a type as the options and EngineInfo spell it: `bf16`, `u8`."""
    return str(dtype.to_string())
