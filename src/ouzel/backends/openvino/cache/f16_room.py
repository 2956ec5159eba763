"""Computes how many requests an f16 KV cache would hold.

An f16 cache is faster than u8 and nearer to the model. It is chosen if the memory for the cache
holds some requests of full length (decision 0045). The type is a property of the compiled model, so
all sizes are computed from the graph before it is compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ouzel.backends.openvino.adapters.adapter_options import subtract_adapter_bytes
from ouzel.backends.openvino.auto_precision import resolve_auto_precision
from ouzel.backends.openvino.cache.kv_cache import CPU_BLOCK_SIZE, cache_bytes
from ouzel.backends.openvino.compilation import expected_type
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.state_tables import find_state_tables, plan_states
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.machine.quantities import format_size

ELEMENT_BYTES = 2  # f16; also bf16, which the plugin uses in place of f16 if it computes in bf16
MAX_REQUIRED = 4  # requests of full length that are enough for every model
ENOUGH_TOKENS = 32_768  # tokens that are enough in all requests together


@dataclass(frozen=True, kw_only=True, slots=True)
class F16Room:
    """The memory for an f16 cache, and the number of requests that the cache must hold."""

    num_bytes: int  # bytes that the cache may take
    # bytes of one request of full length; if the number of blocks is fixed, bytes of all blocks
    request_bytes: int
    num_required: int  # requests that the cache must hold
    max_num_seqs: int  # most requests at a time; memory for more of them is of no use

    @property
    def num_held(self) -> int:
        return min(self.num_bytes // self.request_bytes, self.max_num_seqs)

    @property
    def suffices(self) -> bool:
        return self.num_held >= self.num_required

    def reason(self) -> str:
        """Says which cache is chosen, and why."""
        held = self.num_held
        if not self.suffices:
            required = self.num_required
            return f"u8, because f16 would hold {held} of {required} requests of full length"
        requests = "a request" if held == 1 else f"{held} requests"
        return f"f16: {format_size(held * self.request_bytes)} hold {requests} of full length"


def f16_room(
    core: ov.Core,
    language_model: LanguageModel,
    model: ModelConfig,
    engine: EngineConfig,
    *,
    free_bytes: int,
    num_blocks: int | None,
) -> F16Room:
    """Computes the room from the memory that is free for the model beside its weights.

    With `num_blocks` the cache has this number of blocks.
    """
    block_bytes = f16_block_bytes(language_model.graphs)
    if num_blocks is not None:
        num_bytes = cache_bytes(None, free_bytes)
        return F16Room(
            num_bytes=num_bytes,
            request_bytes=num_blocks * block_bytes,
            num_required=1,
            max_num_seqs=1,
        )
    max_model_len = language_model.context_length(model.max_model_len)
    inferred = expected_type(core, resolve_auto_precision(core, engine, language_model))
    tables = find_state_tables(language_model.graph, inferred)
    try:
        free_bytes = subtract_adapter_bytes(language_model.adapters, model, free_bytes)
        states = plan_states(tables, engine, free_bytes)
        free_bytes, max_num_seqs = free_bytes - states.num_bytes, states.max_num_seqs
    # the real plan, made later, has the exact sizes and reports the lack of memory
    except ModelLoadError:
        free_bytes, max_num_seqs = 0, engine.max_num_seqs
    return F16Room(
        num_bytes=max(cache_bytes(engine.kv_cache_gib, free_bytes), 0),
        request_bytes=max(-(-max_model_len // CPU_BLOCK_SIZE), 2) * block_bytes,
        num_required=num_required(max_model_len, max_num_seqs),
        max_num_seqs=max_num_seqs,
    )


def num_required(max_model_len: int, max_num_seqs: int) -> int:
    """Returns the requests of full length that an f16 cache must hold: fewer for longer
    requests.
    """
    return min(max_num_seqs, MAX_REQUIRED, -(-ENOUGH_TOKENS // max_model_len))


def f16_block_bytes(graphs: Sequence[ov.Model]) -> int:
    """Returns the bytes of a block in all layers together.

    Layers that read the cache of another layer have no bytes of their own.
    """
    row_bytes: dict[str, int] = {}
    for graph in graphs:
        for node in graph.get_ops():
            if node.get_type_name() == "PagedAttentionExtension":
                facts = node.get_rt_info()
                shapes = ((facts[f"num_{kind}_heads"], facts[f"{kind}_head_size"]) for kind in "kv")
                name = node.input_value(3).get_node().get_friendly_name()
                row_bytes[name] = (
                    sum(heads.astype(int) * size.astype(int) for heads, size in shapes)
                    * ELEMENT_BYTES
                )
    return CPU_BLOCK_SIZE * sum(row_bytes.values())
