"""The assistants of Gemma 4 draft with the keys and values of the model.

An assistant takes the model's embedding of the newest token and the model's hidden row of the token
before: x = projection(embedding, hidden row). Its layers have queries only, all at the position of
the newest token. They read the keys and values that the model's last layers of the same kind read.
A second projection makes the hidden row for the next drafted token.

An assistant with ordered embeddings computes the logits of a few clusters of tokens, whose
centroids are nearest. All other tokens get a logit below these.

Reference: transformers, models/gemma4_assistant/modeling_gemma4_assistant.py, and
SinglePositionMultiTokenCandidateGenerator in generation/candidate_generator.py.
"""

from dataclasses import dataclass, replace

import numpy as np

from ouzel.backends.openvino.graph.attention import KvInputs
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.gemma4 import (
    Gemma4Layer,
    Gemma4Shape,
    KeysAndValues,
    attention,
    feed_forward,
)
from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.models import gemma4_text, gemma4_unified_text
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

DEFAULTS = {
    "gemma4_assistant": {"backbone_hidden_size": 1536, **gemma4_text.DEFAULTS},
    "gemma4_unified_assistant": {
        "backbone_hidden_size": 3840,
        **gemma4_text.DEFAULTS,
        **gemma4_unified_text.DEFAULTS,
    },
}
EMBEDDING = "model.embed_tokens"
_OWN_KEYS = (
    "model_type",
    "backbone_hidden_size",
    "use_ordered_embeddings",
    "num_centroids",
    "centroid_intermediate_top_k",
)


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """The tokens in clusters of equal size, each with a centroid."""

    number: int
    num_chosen: int


@dataclass(frozen=True, kw_only=True)
class AssistantShape:
    decoder: Gemma4Shape
    target_size: int  # the hidden size of the model
    clusters: Clusters | None  # None: the logits of all tokens are computed


def read_assistant_config(config: HfConfig) -> HfConfig:
    """Returns the keys of the assistant and of its decoder, `text_config`, in one level."""
    config.required_section("text_config")
    config.require(tie_word_embeddings=True)
    own = {key: config.values[key] for key in _OWN_KEYS if key in config.values}
    return config.text_model().with_values(**own).with_defaults(**DEFAULTS[config.model_type])


def read_shape(config: HfConfig) -> AssistantShape:
    """Reads the shape. Raises ModelLoadError for values that the reference refuses, too."""
    for key in ("hidden_size_per_layer_input", "enable_moe_block", "use_double_wide_mlp"):
        if config.values.get(key):
            raise config.refuse(key, "0 or false in an assistant")
    num_layers = config.size("num_hidden_layers")
    if config.integer("num_kv_shared_layers", 0) not in (0, num_layers):
        raise config.refuse("num_kv_shared_layers", f"{num_layers}, all layers of the assistant")
    shape = gemma4_text.read_shape(config.with_values(num_kv_shared_layers=0))
    kinds = list(shape.ropes)
    # A query attends to as many tokens as the window has, and to one more: its own token has no
    # keys and values yet.
    layers = tuple(
        replace(
            layer,
            cache=num_layers + kinds.index(layer.kind),
            sliding_window=layer.sliding_window and layer.sliding_window + 1,
        )
        for layer in shape.layers
    )
    return AssistantShape(
        decoder=replace(shape, layers=layers),
        target_size=config.size("backbone_hidden_size"),
        clusters=read_clusters(config, shape.vocab_size),
    )


def read_clusters(config: HfConfig, vocab_size: int) -> Clusters | None:
    if not config.flag("use_ordered_embeddings", False):
        return None
    config = config.with_defaults(num_centroids=2048, centroid_intermediate_top_k=32)
    number, num_chosen = config.size("num_centroids"), config.size("centroid_intermediate_top_k")
    if vocab_size % number:
        raise config.refuse("num_centroids", f"a divisor of vocab_size {vocab_size}")
    if num_chosen > number:
        raise config.refuse("centroid_intermediate_top_k", f"at most num_centroids {number}")
    return Clusters(number=number, num_chosen=num_chosen)


def build(config: HfConfig, b: Builder) -> LanguageModel:
    """Builds the graph: `embedded_rows` and `hidden_rows` [T, the model's hidden size] become
    `logits` and the `hidden_rows` of further tokens.

    The caches are inputs with the names of kinds of layers, such as `key_cache.full_attention`.
    """
    assistant = read_shape(config)
    shape, target_size = assistant.decoder, assistant.target_size
    hidden = b.graph.input("hidden_rows", [-1, target_size], ov.Type.f32)
    embedded = b.graph.input("embedded_rows", [-1, target_size], ov.Type.f32)
    x = b.linear(
        ops.concat([embedded, hidden], -1), "pre_projection", 2 * target_size, shape.hidden_size
    )
    angles = {kind: b.angles(rope, kind) for kind, rope in shape.ropes.items()}
    layers_by_kind = {layer.kind: layer for layer in shape.layers}
    caches = {layer.cache: lent_cache(b, layer) for layer in layers_by_kind.values()}
    for index in range(len(shape.layers)):
        x = ops.add(x, attention(b, x, index, shape, angles=angles, caches=caches))
        if index == len(shape.layers) - 1:
            x = b.graph.sample_rows(x)
        x = ops.add(x, feed_forward(b, x, index, shape))
        x = ops.multiply(x, b.graph.array(b.array(f"model.layers.{index}.layer_scalar", 1)))
    x = b.norm(x, "model.norm", shape.hidden_size, shape.norm)
    b.graph.output("hidden_rows", b.linear(x, "post_projection", shape.hidden_size, target_size))
    model = b.language_model(
        compute_logits(b, x, shape)
        if assistant.clusters is None
        else compute_logits_of_clusters(b, x, shape, assistant.clusters),
        hidden_size=target_size,
        vocab_size=shape.vocab_size,
        max_positions=min(rope.max_positions for rope in shape.ropes.values()),
    )
    embedding = Tensor(EMBEDDING + ".weight", (shape.vocab_size, shape.hidden_size))
    return replace(model, embedding=embedding)


def lent_cache(b: Builder, layer: Gemma4Layer) -> KeysAndValues:
    """Adds inputs for a cache of the model; keys and values of the new rows are zeros, and have no
    effect.
    """
    num_rows = ops.shape_of(b.graph.token_ids)
    zeros = ops.broadcast(
        ops.constant(np.float32(0)),
        ops.concat([num_rows, integers(layer.num_kv_heads * layer.head_dim)], 0),
    )
    heads = ops.reshape(zeros, integers(0, layer.num_kv_heads, layer.head_dim), True)
    key, value = (
        b.graph.input(f"{name}_cache.{layer.kind}", [-1] * 4, ov.Type.dynamic)
        for name in ("key", "value")
    )
    return KeysAndValues(heads, zeros, KvInputs(key, value))


def compute_logits(b: Builder, rows: Node, shape: Gemma4Shape) -> Node:
    """Returns the logits of all tokens, [S, vocab_size]."""
    return b.product(rows, b.head(EMBEDDING, shape.vocab_size, shape.hidden_size))


def compute_logits_of_clusters(
    b: Builder, rows: Node, shape: Gemma4Shape, clusters: Clusters
) -> Node:
    """Returns logits [S, vocab_size]: products in the chosen clusters, and a smaller number
    elsewhere.

    The columns of the chosen tokens are gathered from a plain matrix. For 262,144 tokens and 256
    dimensions a draft of one token takes 3 ms on two cores; it takes 10 ms if all tokens are
    multiplied, and 21 ms if the columns are gathered from cells of the kernels.
    """
    vocab_size, hidden_size = shape.vocab_size, shape.hidden_size
    centroids = b.linear(rows, "masked_embedding.centroids", hidden_size, clusters.number)
    chosen = ops.topk(
        centroids, np.int64(clusters.num_chosen), -1, "max", "none", index_element_type="i64"
    ).output(1)
    order = b.array("masked_embedding.token_ordering", vocab_size)
    if order.min() < 0 or order.max() >= vocab_size:
        raise ModelLoadError(
            "tensor masked_embedding.token_ordering must have tokens from 0 to "
            f"{vocab_size - 1}, found {order.min():.0f} to {order.max():.0f}"
        )
    table = ops.constant(order.astype(np.int64).reshape(clusters.number, -1))
    num_tokens = clusters.num_chosen * (vocab_size // clusters.number)
    tokens = ops.reshape(
        ops.gather(table, chosen, ops.constant(np.int64(0))), integers(-1, num_tokens), False
    )
    head = b.matrix_per_head(EMBEDDING, vocab_size, 1, hidden_size, range(1))
    columns = ops.squeeze(ops.gather(head, tokens, ops.constant(np.int64(0))), integers(2))
    logits = ops.squeeze(
        ops.matmul(columns, ops.unsqueeze(rows, integers(2)), False, False), integers(2)
    )
    lowest = ops.subtract(ops.reduce_min(logits, integers(1), True), ops.constant(np.float32(1)))
    num_rows = ops.gather(ops.shape_of(rows), integers(0), ops.constant(np.int64(0)))
    others = ops.broadcast(lowest, ops.concat([num_rows, integers(vocab_size)], 0))
    return ops.scatter_elements_update(others, tokens, logits, ops.constant(np.int64(1)))
