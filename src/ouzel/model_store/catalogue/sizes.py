"""Computes the sizes of a catalogue entry from the shape of the model.

The sizes agree with `ouzel inspect` within a few percent; tests compare both.
"""

from typing import Literal

from ouzel.model_store.catalogue.entry import Entry, Shape

Width = Literal["bf16", "int8", "int4"]
WIDTHS: tuple[Width, ...] = ("bf16", "int8", "int4")

# Bits of a weight with its share of the scales: groups of 64 weights have a scale of 16 bits.
_BITS: dict[Width, float] = {"bf16": 16, "int8": 8.25, "int4": 4.25}
# int4 stores the embedding and the matrix of the logits in 8 bits.
_OUTER_BITS: dict[Width, float] = {"bf16": 16, "int8": 8.25, "int4": 8.25}
_VISION_BITS = 16  # vision encoders are not compressed
_CACHE_BYTES = 1.1  # a value of the KV cache in u8 with its share of the scales, the least
CONTEXT_TOKENS = 8192  # tokens for which a model that fits has a KV cache
PROGRAM_BYTES = 800 * 10**6  # the processes of a server, without weights and cache


def count_parameters(shape: Shape) -> int:
    """Returns the parameters of a shape, without norms and biases: less than 1 % are missing."""
    layers, experts, outer = _count_parts(shape)
    return layers + experts + outer + shape.vision_parameters


def _count_parts(shape: Shape) -> tuple[int, int, int]:
    """Returns the parameters of layers without experts, of the experts, and outside the layers."""
    queries = shape.hidden * shape.heads * shape.head_size
    keys = shape.hidden * shape.kv_heads * shape.head_size
    feed_forward = shape.feed_forward_matrices * shape.hidden * shape.feed_forward
    router = shape.experts * shape.hidden
    dense = 2 * queries + 2 * keys + router + (0 if shape.experts else feed_forward)
    outer = shape.vocabulary * (1 if shape.tied else 2) + shape.positions
    return (
        shape.layers * dense,
        shape.layers * shape.experts * feed_forward,
        outer * shape.hidden,
    )


def compute_weight_bytes(shape: Shape, width: Width) -> int:
    """Returns the bytes of the weights in memory; a server stores as many on the disk."""
    layers, experts, outer = _count_parts(shape)
    expert_bits = shape.expert_bits or _BITS[width]
    bits = layers * _BITS[width] + experts * expert_bits + outer * _OUTER_BITS[width]
    return int(bits + shape.vision_parameters * _VISION_BITS) // 8


def compute_cache_bytes(entry: Entry) -> int:
    """Returns the bytes of the KV cache for one request of CONTEXT_TOKENS tokens; 0: no cache."""
    if entry.shape.encoder:
        return 0
    shape = entry.shape
    values = 2 * shape.layers * shape.kv_heads * shape.head_size
    return int(values * _CACHE_BYTES * min(entry.context, CONTEXT_TOKENS))


def compute_memory_bytes(entry: Entry, width: Width) -> int:
    """Returns the memory of a server with the model and a KV cache for CONTEXT_TOKENS tokens."""
    return compute_weight_bytes(entry.shape, width) + compute_cache_bytes(entry) + PROGRAM_BYTES


def compute_download_bytes(entry: Entry) -> int:
    """Returns the bytes of the model's files; of the packages if no repository has the model."""
    if not entry.repository and entry.packages is not None:
        return entry.packages.size_bytes
    return entry.download_bytes or entry.parameters * entry.stored_bits // 8


def choose_width(weights: str) -> Width:
    """Returns the width of most weights for a value of `--weights`; f32 counts as bf16."""
    first = weights.partition(",")[0]
    if first == "int4":
        return "int4"
    return "bf16" if first in ("bf16", "f32") else "int8"
