"""DeBERTa v2 and v3 (mxbai-rerank-v1, deberta-v3): attention also reads distances between tokens.

Reference: transformers, models/deberta_v2/modeling_deberta_v2.py. The product of a query with a key
gets two more: the query with the key of the distance (c2p), and the key with the query of the
distance (p2c). A table of embeddings has the rows of distances; near distances have a row each, and
far ones share rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.bert import BertShape, finish_layer
from ouzel.backends.openvino.graph.distances import (
    align_distances,
    bucket_distances,
    read_num_positions,
    reverse,
    take_distances,
)
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, scaled
from ouzel.backends.openvino.graph.vision import split_batch_heads
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_KINDS = ("c2p", "p2c")
_LEFT_OUT = (
    "cls.",
    "lm_predictions.",
    "mask_predictions.",
    "pooler.",
    "embeddings.position_",
    "deberta.embeddings.position_",
)


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(max_position_embeddings=512, layer_norm_eps=1e-7)
    shape = BertShape.read(config)
    _refuse_variants(config, shape.hidden_size)
    size = shape.hidden_size
    prefix = "deberta." if weights.has("deberta.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = b.norm(_embedded(b, config, size), "embeddings.LayerNorm", size, shape.norm)
    layers = _Layers(b, shape, _read_distances(b, config, shape))
    for layer in range(shape.num_layers):
        rows = layers.build_layer(rows, layer)
    if num_labels:
        head = b.without_prefix()
        activation = read_activation(config, "pooler_hidden_act", "gelu")
        first = activate(head.linear(b.pooled(rows), "pooler.dense", size, size), activation)
        rows = head.linear(first, "classifier", size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=config.size("max_position_embeddings"),
        num_labels=num_labels,
        left_out=_LEFT_OUT,
    )


def _refuse_variants(config: HfConfig, size: int) -> None:
    if config.integer("conv_kernel_size", 0) > 0:
        raise config.refuse("conv_kernel_size", "0: there is no convolution behind the first layer")
    for key in ("embedding_size", "pooler_hidden_size"):
        if config.size(key, size) != size:
            raise config.refuse(key, f"hidden_size, {size}")
    head_dim = size // config.size("num_attention_heads")
    if config.size("attention_head_size", head_dim) != head_dim:
        raise config.refuse("attention_head_size", str(head_dim))
    if config.text("norm_rel_ebd", "none") not in ("none", "layer_norm"):
        raise config.refuse("norm_rel_ebd", "none, layer_norm")


def _embedded(b: EncoderBuilder, config: HfConfig, size: int) -> Node:
    rows = b.embed("embeddings.word_embeddings", config.size("vocab_size"), size, b.token_ids)
    if config.flag("position_biased_input", True):
        positions = b.input("position_ids", [-1], ov.Type.i64)
        num_positions = config.size("max_position_embeddings")
        table = b.embed("embeddings.position_embeddings", num_positions, size, positions)
        rows = ops.add(rows, table)
    if config.integer("type_vocab_size", 0) == 0:
        return rows
    num_types = config.size("type_vocab_size")
    types = b.input("token_types", [-1], ov.Type.i64)
    return ops.add(rows, b.embed("embeddings.token_type_embeddings", num_types, size, types))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distances:
    """The embeddings of distances, and the products of attention that they are part of."""

    kinds: frozenset[str]
    num_terms: int  # products whose sum is divided by sqrt(num_terms * head_dim)
    shares_projections: bool  # distances have the projections of tokens
    rows: Node  # [2 L - 1, hidden_size], from the distance 1 - L to L - 1
    num_places: Node  # L, [1]


def _read_distances(b: EncoderBuilder, config: HfConfig, shape: BertShape) -> _Distances | None:
    kinds = _read_kinds(config)
    if bool(kinds) != config.flag("relative_attention", False):
        raise config.refuse("pos_att_type", "c2p, p2c with relative_attention, none without it")
    if not kinds:
        return None
    num_positions = read_num_positions(config)
    longest = config.integer("max_relative_positions", -1)
    longest = num_positions if longest < 1 else longest
    num_buckets = max(0, config.integer("position_buckets", -1))
    if num_buckets and not 4 <= num_buckets <= 2 * (longest - 2):
        raise config.refuse("position_buckets", f"0, or 4 to {2 * (longest - 2)}")
    span = num_buckets or longest
    buckets = bucket_distances(num_positions, num_buckets, longest)
    table = _table(b, config, shape, 2 * span)
    num_places = gather(ops.shape_of(b.mask()), integers(3))
    rows = np.clip(buckets + span, 0, 2 * span - 1).astype(np.int32)
    return _Distances(
        kinds=kinds,
        num_terms=1 + len(kinds),
        shares_projections=config.flag("share_att_key", False),
        rows=take_distances(b.constant(table), rows, num_places),
        num_places=num_places,
    )


def _read_kinds(config: HfConfig) -> frozenset[str]:
    value = config.values.get("pos_att_type") or []
    kinds = value.lower().split("|") if isinstance(value, str) else value
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise config.refuse("pos_att_type", ", ".join(_KINDS))
    found = frozenset(kind.strip() for kind in kinds)
    if not found <= {*_KINDS}:
        raise config.refuse("pos_att_type", ", ".join(_KINDS))
    return found


def _table(
    b: EncoderBuilder, config: HfConfig, shape: BertShape, num_rows: int
) -> NDArray[np.float32]:
    table = b.array("encoder.rel_embeddings.weight", num_rows, shape.hidden_size)
    if config.text("norm_rel_ebd", "none") == "none":
        return table
    weight, bias = (
        b.array(f"encoder.LayerNorm.{name}", shape.hidden_size) for name in ("weight", "bias")
    )
    centred = table - table.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    normed: NDArray[np.float32] = centred / np.sqrt(variance + np.float32(shape.norm.epsilon))
    return normed * weight + bias


class _Layers:
    def __init__(self, b: EncoderBuilder, shape: BertShape, distances: _Distances | None) -> None:
        self._b, self._shape, self._distances = b, shape, distances

    def build_layer(self, rows: Node, layer: int) -> Node:
        b, shape, prefix = self._b, self._shape, f"encoder.layer.{layer}."
        projections = [
            self._project(rows, f"{prefix}attention.self.{name}_proj")
            for name in ("query", "key", "value")
        ]
        query, key, value = b.padded_heads(projections, shape.num_heads)
        mask = b.mask()
        if self._distances is not None:
            query = scaled(query, self._distances.num_terms**-0.5)
            names = f"{prefix}attention.self."
            mask = ops.add(mask, self._distance_products(query, key, names, self._distances))
        return finish_layer(b, rows, b.attend((query, key, value), mask), prefix, shape)

    def _project(self, rows: Node, name: str) -> Node:
        return self._b.linear(rows, name, self._shape.hidden_size, self._shape.hidden_size)

    def _distance_products(
        self, query: Node, key: Node, prefix: str, distances: _Distances
    ) -> Node:
        """Returns the sum of the products with distances, [texts, heads, places, places].

        The rows of keys of distances descend, since a key further to the right is at a smaller
        distance; the queries of distances ascend, and their products have the keys as rows.
        """
        terms = []
        if "c2p" in distances.kinds:
            keys = self._distance_heads(reverse(distances.rows), prefix, "key", distances)
            products = ops.matmul(query, keys, False, True)
            terms.append(align_distances(products, distances.num_places))
        if "p2c" in distances.kinds:
            queries = self._distance_heads(distances.rows, prefix, "query", distances)
            queries = scaled(queries, distances.num_terms**-0.5)
            products = ops.matmul(key, queries, False, True)
            aligned = align_distances(products, distances.num_places)
            terms.append(ops.transpose(aligned, integers(0, 1, 3, 2)))
        total = terms[0] if len(terms) == 1 else ops.add(*terms)
        return scaled(total, (self._shape.hidden_size // self._shape.num_heads) ** -0.5)

    def _distance_heads(self, rows: Node, prefix: str, name: str, distances: _Distances) -> Node:
        """Returns the keys or queries of distances, [1, heads, 2 L - 1, head_dim]."""
        projection = f"{name}_proj" if distances.shares_projections else f"pos_{name}_proj"
        size, num_heads = self._shape.hidden_size, self._shape.num_heads
        projected = ops.unsqueeze(self._project(rows, prefix + projection), integers(0))
        return split_batch_heads(projected, num_heads, size // num_heads)
