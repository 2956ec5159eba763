"""The decoder of Gemma 4: layers of two kinds, the last of which may share keys and values.

x += norm(attention(norm(x))); x += norm(feed_forward(norm(x))), to which experts may add
norm(experts' output); with embeddings for each layer, x += norm(projection(gelu(gate(x)) *
embedding of the layer)); then x *= a scalar of the layer.

Reference: transformers, models/gemma4/modeling_gemma4.py.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.activations import Activation, activate
from ouzel.backends.openvino.graph.attention import KvInputs, cache_inputs, paged_attention
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import softcapped
from ouzel.backends.openvino.graph.experts import ExpertsShape, mixture
from ouzel.backends.openvino.graph.lent_parts import lend_parts
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node, int32, merge_heads, scaled, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.rope import Rope
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.graph.routing import Choice, Routing, route
from ouzel.backends.openvino.language_model import LanguageModel, LentCache
from ouzel.backends.openvino.library import ops


@dataclass(frozen=True, kw_only=True)
class Gemma4Layer:
    kind: str  # the key of its rotary positions
    head_dim: int
    num_kv_heads: int
    sliding_window: int  # 0: no window
    has_values: bool  # False: the keys, before their norm, are the values, too
    cache: int  # the layer whose keys and values it reads: an earlier layer, or itself
    inner_size: int


@dataclass(frozen=True, kw_only=True)
class LayerEmbeddings:
    """The embeddings for each layer: one table with `size` numbers for each token and layer.

    Tokens that are not in the table have its first row.
    """

    size: int
    vocab_size: int  # rows of the table
    factor: float
    image_token_id: int  # the row for tokens of images


@dataclass(frozen=True, kw_only=True)
class Gemma4Experts:
    """The experts, which stand beside the feed-forward layer in all layers."""

    routing: Routing
    shape: ExpertsShape


@dataclass(frozen=True, kw_only=True)
class Gemma4Shape:
    hidden_size: int
    vocab_size: int
    num_heads: int
    layers: tuple[Gemma4Layer, ...]
    ropes: dict[str, Rope]  # keys are kinds
    norm: Norm
    activation: Activation
    has_attention_bias: bool
    tied_embeddings: bool
    embedding_factor: float
    layer_embeddings: LayerEmbeddings | None
    experts: Gemma4Experts | None
    logits_softcap: float  # 0: none


@dataclass(frozen=True)
class KeysAndValues:
    """A layer's keys and values of the scheduled tokens, and its cache."""

    keys: Node  # [T, heads, head_dim]
    values: Node  # [T, heads * head_dim]
    cache: KvInputs


def build_gemma4(b: Builder, shape: Gemma4Shape) -> LanguageModel:
    is_head = shape.tied_embeddings
    embedding = b.embedding(
        "model.embed_tokens", shape.vocab_size, shape.hidden_size, is_head=is_head
    )
    x = b.with_images(scaled(b.embed(embedding), shape.embedding_factor), shape.hidden_size)
    angles = {kind: b.angles(rope, kind) for kind, rope in shape.ropes.items()}
    of_layers = layer_inputs(b, x, shape)
    caches: dict[int, KeysAndValues] = {}
    for index in range(len(shape.layers)):
        x = ops.add(x, attention(b, x, index, shape, angles=angles, caches=caches))
        if index == len(shape.layers) - 1:
            x, of_layers = b.graph.sample_rows(x), [b.graph.sample_rows(each) for each in of_layers]
        x = ops.add(x, feed_forward(b, x, index, shape))
        if of_layers:
            x = ops.add(x, embedding_of_layer(b, x, index, shape, of_layers[index]))
        x = ops.multiply(x, b.graph.array(b.array(f"model.layers.{index}.layer_scalar", 1)))
    x = b.norm(x, "model.norm", shape.hidden_size, shape.norm)
    head = embedding if is_head else b.head("lm_head", shape.vocab_size, shape.hidden_size)

    def compute_logits(rows: Node) -> Node:
        return softcapped(b.logits(rows, head), shape.logits_softcap)

    lent = lend_parts(
        b,
        embed=lambda ids: scaled(b.graph.embed(embedding, ids), shape.embedding_factor),
        compute_logits=compute_logits,
        hidden_size=shape.hidden_size,
        caches=list_caches(shape),
    )
    return b.language_model(
        compute_logits(x) if lent is None else x,
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        max_positions=min(rope.max_positions for rope in shape.ropes.values()),
        lent=lent,
    )


def list_caches(shape: Gemma4Shape) -> dict[str, LentCache]:
    """Returns the cache that the last layer of each kind reads."""
    return {
        layer.kind: LentCache(
            layer=layer.cache, num_kv_heads=layer.num_kv_heads, head_dim=layer.head_dim
        )
        for layer in shape.layers
    }


def attention(
    b: Builder,
    x: Node,
    index: int,
    shape: Gemma4Shape,
    *,
    angles: dict[str, Angles],
    caches: dict[int, KeysAndValues],
) -> Node:
    """Computes the attention of a layer, with its norms."""
    prefix = f"model.layers.{index}."
    rows = b.norm(x, prefix + "input_layernorm", shape.hidden_size, shape.norm)
    output = attend(b, rows, index, shape, angles=angles, caches=caches)
    return b.norm(output, prefix + "post_attention_layernorm", shape.hidden_size, shape.norm)


def attend(
    b: Builder,
    rows: Node,
    index: int,
    shape: Gemma4Shape,
    *,
    angles: dict[str, Angles],
    caches: dict[int, KeysAndValues],
) -> Node:
    """Computes the attention of normalised rows; adds keys and values of its own to `caches`."""
    layer, prefix = shape.layers[index], f"model.layers.{index}."
    query = project_heads(
        b, rows, prefix + "self_attn.q_proj", shape.num_heads, layer.head_dim, shape=shape
    )
    query = b.norm(query, prefix + "self_attn.q_norm", layer.head_dim, shape.norm)
    if layer.cache == index:
        caches[index] = keys_and_values(b, rows, index, shape, angles[layer.kind])
    source = caches[layer.cache]
    attended = paged_attention(
        b.graph,
        rotate(query, angles[layer.kind], layer.head_dim),
        source.keys,
        source.values,
        source.cache,
        num_kv_heads=layer.num_kv_heads,
        key_dim=layer.head_dim,
        value_dim=layer.head_dim,
        scale=1.0,
        sliding_window=layer.sliding_window,
        writes_cache=layer.cache == index,
        attends_two_ways=layer.sliding_window > 0,
    )
    num_columns = shape.num_heads * layer.head_dim
    output_name, bias = prefix + "self_attn.o_proj", shape.has_attention_bias
    return b.linear(attended, output_name, num_columns, shape.hidden_size, has_bias=bias)


def keys_and_values(
    b: Builder, rows: Node, index: int, shape: Gemma4Shape, angles: Angles
) -> KeysAndValues:
    """Returns the keys, normalised with weights and rotated, and the values, normalised only."""
    layer, prefix = shape.layers[index], f"model.layers.{index}.self_attn."
    keys = values = project_heads(
        b, rows, prefix + "k_proj", layer.num_kv_heads, layer.head_dim, shape=shape
    )
    if layer.has_values:
        values = project_heads(
            b, rows, prefix + "v_proj", layer.num_kv_heads, layer.head_dim, shape=shape
        )
    keys = b.norm(keys, prefix + "k_norm", layer.head_dim, shape.norm)
    return KeysAndValues(
        rotate(keys, angles, layer.head_dim),
        merge_heads(normalise(values, shape.norm)),
        cache_inputs(b.graph, index),
    )


def project_heads(
    b: Builder, rows: Node, name: str, num_heads: int, head_dim: int, *, shape: Gemma4Shape
) -> Node:
    size, bias = num_heads * head_dim, shape.has_attention_bias
    return split_heads(
        b.linear(rows, name, shape.hidden_size, size, has_bias=bias), num_heads, head_dim
    )


def feed_forward(b: Builder, x: Node, index: int, shape: Gemma4Shape) -> Node:
    prefix, inner_size = f"model.layers.{index}.", shape.layers[index].inner_size
    rows = b.norm(x, prefix + "pre_feedforward_layernorm", shape.hidden_size, shape.norm)
    mlp = MlpShape(
        hidden_size=shape.hidden_size, inner_size=inner_size, activation=shape.activation
    )
    rows = gated_mlp(b, rows, prefix + "mlp.", mlp)
    if shape.experts:
        rows = b.norm(rows, prefix + "post_feedforward_layernorm_1", shape.hidden_size, shape.norm)
        rows = ops.add(rows, compute_experts(b, x, prefix, shape, shape.experts))
    return b.norm(rows, prefix + "post_feedforward_layernorm", shape.hidden_size, shape.norm)


def compute_experts(
    b: Builder, x: Node, prefix: str, shape: Gemma4Shape, experts: Gemma4Experts
) -> Node:
    """Computes the experts beside the feed-forward layer.

    The router reads scaled rows without the weights of a norm; the experts read rows with another
    norm.
    """
    hidden_size = shape.hidden_size
    scale = b.array(prefix + "router.scale", hidden_size) * np.float32(hidden_size**-0.5)
    seen = ops.multiply(normalise(x, shape.norm), b.graph.array(scale))
    choice = route(b, seen, prefix + "router.proj", hidden_size, experts.routing)
    expert_scales = b.graph.array(
        b.array(prefix + "router.per_expert_scale", experts.routing.num_experts)
    )
    weights = ops.multiply(choice.weights, ops.gather(expert_scales, choice.experts, int32(0)))
    rows = b.norm(x, prefix + "pre_feedforward_layernorm_2", hidden_size, shape.norm)
    rows = mixture(b, rows, Choice(choice.experts, weights), prefix, experts.shape)
    return b.norm(rows, prefix + "post_feedforward_layernorm_2", hidden_size, shape.norm)


def layer_inputs(b: Builder, x: Node, shape: Gemma4Shape) -> list[Node]:
    """Returns the inputs of the layers, each [T, size], computed from tokens and their embeddings.

    The list is empty if the checkpoint has no embeddings for layers.
    """
    table = shape.layer_embeddings
    if table is None:
        return []
    num_layers, size = len(shape.layers), table.size
    name, num_columns = "model.embed_tokens_per_layer", num_layers * size
    packed = b.embed(
        b.embedding(name, table.vocab_size, num_columns, is_head=False),
        table.image_token_id,
        num_known=table.vocab_size if table.vocab_size < shape.vocab_size else None,
    )
    projected = b.linear(x, "model.per_layer_model_projection", shape.hidden_size, num_columns)
    projected = split_heads(scaled(projected, shape.hidden_size**-0.5), num_layers, size)
    projected = b.norm(projected, "model.per_layer_projection_norm", size, shape.norm)
    both = ops.add(merge_heads(projected), scaled(packed, table.factor))
    return split(scaled(both, 2**-0.5), *[size] * num_layers)


def embedding_of_layer(
    b: Builder, x: Node, index: int, shape: Gemma4Shape, layer_input: Node
) -> Node:
    assert shape.layer_embeddings is not None
    prefix, size = f"model.layers.{index}.", shape.layer_embeddings.size
    gate = activate(
        b.linear(x, prefix + "per_layer_input_gate", shape.hidden_size, size), shape.activation
    )
    rows = b.linear(
        ops.multiply(gate, layer_input), prefix + "per_layer_projection", size, shape.hidden_size
    )
    return b.norm(rows, prefix + "post_per_layer_input_norm", shape.hidden_size, shape.norm)
