"""The decoder of Gemma 3n: several streams of rows, of which each layer computes one (AltUp).

A layer predicts all streams from all streams, computes its attention and feed-forward layer on one
of them, the active one, and corrects every prediction by the difference that this made. Beside the
attention stands a product of low rank (LAuReL). Attention, shared keys and values, and embeddings
for each layer are as in Gemma 4.

Reference: transformers, models/gemma3n/modeling_gemma3n.py.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import softcapped
from ouzel.backends.openvino.graph.gemma4 import (
    Gemma4Shape,
    KeysAndValues,
    attend,
    embedding_of_layer,
    layer_inputs,
)
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node, integers, part, real, scaled, split_heads
from ouzel.backends.openvino.graph.rotation import Angles
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops

SMALLEST_MEAN_SQUARE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Gemma3nShape:
    decoder: Gemma4Shape  # sizes, layers and embeddings for layers
    num_streams: int
    active: int  # the number of the stream that layers compute
    scales_active: bool  # the active stream has a scale before the layer's embedding is added
    laurel_rank: int
    # by layer: the gates of a row below mean + cutoff * deviation are 0; None: all gates stay
    cutoffs: tuple[float | None, ...]


def build_gemma3n(b: Builder, shape: Gemma3nShape) -> LanguageModel:
    decoder = shape.decoder
    is_head = decoder.tied_embeddings
    embedding = b.embedding(
        "model.embed_tokens", decoder.vocab_size, decoder.hidden_size, is_head=is_head
    )
    x = scaled(b.embed(embedding), decoder.embedding_factor)
    angles = {kind: b.angles(rope, kind) for kind, rope in decoder.ropes.items()}
    of_layers = layer_inputs(b, x, decoder)
    streams = open_streams(b, x, shape)
    caches: dict[int, KeysAndValues] = {}
    for index, of_layer in enumerate(of_layers):
        streams = compute_layer(b, streams, of_layer, index, shape, angles=angles, caches=caches)
    x = b.norm(join_streams(b, streams, shape), "model.norm", decoder.hidden_size, decoder.norm)
    head = embedding if is_head else b.head("lm_head", decoder.vocab_size, decoder.hidden_size)
    return b.language_model(
        softcapped(b.logits(x, head), decoder.logits_softcap),
        hidden_size=decoder.hidden_size,
        vocab_size=decoder.vocab_size,
        max_positions=min(rope.max_positions for rope in decoder.ropes.values()),
    )


def open_streams(b: Builder, x: Node, shape: Gemma3nShape) -> Node:
    """Returns [T, streams, hidden_size]: the rows, and projections with the length of the rows."""
    rows = [x]
    for number in range(shape.num_streams - 1):
        rows.append(project_stream(b, x, f"model.altup_projections.{number}", x, shape))
    return ops.concat([ops.unsqueeze(each, integers(1)) for each in rows], 1)


def join_streams(b: Builder, streams: Node, shape: Gemma3nShape) -> Node:
    """Returns the mean of the first stream and the projections of the others, as long as it."""
    first = total = take_stream(streams, 0)
    for number in range(shape.num_streams - 1):
        rows, name = take_stream(streams, number + 1), f"model.altup_unembed_projections.{number}"
        total = ops.add(total, project_stream(b, rows, name, first, shape))
    return scaled(total, 1 / shape.num_streams)


def project_stream(b: Builder, rows: Node, name: str, like: Node, shape: Gemma3nShape) -> Node:
    """Multiplies the rows by a matrix, and gives them the length of the rows `like`."""
    size = shape.decoder.hidden_size
    projected = b.linear(rows, name, size, size)
    length = ops.sqrt(mean_square(like))
    own = ops.sqrt(ops.maximum(mean_square(projected), real(SMALLEST_MEAN_SQUARE)))
    return ops.multiply(projected, ops.divide(length, own))


def mean_square(rows: Node) -> Node:
    return ops.reduce_mean(ops.multiply(rows, rows), integers(-1), True)


def take_stream(streams: Node, number: int) -> Node:
    return ops.squeeze(part(streams, number, number + 1, 1), integers(1))


def compute_layer(
    b: Builder,
    streams: Node,
    of_layer: Node,
    index: int,
    shape: Gemma3nShape,
    *,
    angles: dict[str, Angles],
    caches: dict[int, KeysAndValues],
) -> Node:
    """Returns the streams behind the layer; `of_layer` is its part of the tokens' embeddings."""
    decoder, prefix = shape.decoder, f"model.layers.{index}."
    size, norm = decoder.hidden_size, decoder.norm
    predicted = predict(b, streams, prefix, shape)
    active = take_stream(predicted, shape.active)
    rows = b.norm(active, prefix + "input_layernorm", size, norm)
    attended = attend(b, rows, index, decoder, angles=angles, caches=caches)
    attended = b.norm(attended, prefix + "post_attention_layernorm", size, norm)
    mixed = ops.add(ops.add(active, attended), laurel(b, rows, prefix, shape))
    if index == len(decoder.layers) - 1:
        mixed, predicted, of_layer = (
            b.graph.sample_rows(each) for each in (mixed, predicted, of_layer)
        )
    mixed = scaled(mixed, 2**-0.5)
    rows = b.norm(mixed, prefix + "pre_feedforward_layernorm", size, norm)
    mlp = MlpShape(
        hidden_size=size,
        inner_size=decoder.layers[index].inner_size,
        activation=decoder.activation,
        cutoff=shape.cutoffs[index],
    )
    rows = gated_mlp(b, rows, prefix + "mlp.", mlp)
    activated = ops.add(mixed, b.norm(rows, prefix + "post_feedforward_layernorm", size, norm))
    corrected = correct(b, predicted, activated, prefix, shape)
    active = take_stream(corrected, shape.active)
    if shape.scales_active:
        scale = b.array(prefix + "altup.correct_output_scale", size)
        active = ops.multiply(active, b.graph.array(scale))
    added = ops.unsqueeze(embedding_of_layer(b, active, index, decoder, of_layer), integers(1))
    is_taken = np.ones((1, shape.num_streams, 1), np.float32)
    is_taken[:, 0] = 0  # also if another stream is the active one
    return ops.add(corrected, ops.multiply(added, b.graph.array(is_taken)))


def laurel(b: Builder, rows: Node, prefix: str, shape: Gemma3nShape) -> Node:
    size, rank = shape.decoder.hidden_size, shape.laurel_rank
    low = b.linear(rows, prefix + "laurel.linear_left", size, rank)
    product = b.linear(low, prefix + "laurel.linear_right", rank, size)
    normed = b.norm(product, prefix + "laurel.post_laurel_norm", size, shape.decoder.norm)
    return ops.add(rows, normed)


def predict(b: Builder, streams: Node, prefix: str, shape: Gemma3nShape) -> Node:
    """Adds to each stream a mixture of all streams, with factors that the active one decides."""
    count = shape.num_streams
    modalities = route_streams(b, take_stream(streams, shape.active), prefix, shape)
    factors = small_product(
        b, modalities, prefix + "altup.prediction_coefs", (count * count, count)
    )
    factors = split_heads(factors, count, count)
    return ops.add(streams, ops.matmul(factors, streams, False, False))


def correct(b: Builder, predicted: Node, activated: Node, prefix: str, shape: Gemma3nShape) -> Node:
    """Adds to each stream the difference that the layer made, with factors that it decides."""
    count = shape.num_streams
    modalities = route_streams(b, activated, prefix, shape)
    factors = small_product(b, modalities, prefix + "altup.correction_coefs", (count, count))
    factors = ops.unsqueeze(ops.add(factors, real(1.0)), integers(-1))
    difference = ops.subtract(activated, take_stream(predicted, shape.active))
    return ops.add(predicted, ops.multiply(ops.unsqueeze(difference, integers(1)), factors))


def route_streams(b: Builder, rows: Node, prefix: str, shape: Gemma3nShape) -> Node:
    """Returns [T, streams], between -1 and 1."""
    size = shape.decoder.hidden_size
    normed = b.norm(rows, prefix + "altup.router_norm", size, shape.decoder.norm)
    name = prefix + "altup.modality_router"
    return ops.tanh(small_product(b, scaled(normed, 1 / size), name, (shape.num_streams, size)))


def small_product(b: Builder, rows: Node, name: str, matrix: tuple[int, int]) -> Node:
    """Multiplies the rows by the transpose of a matrix of a few rows, which is kept in f32."""
    return ops.matmul(rows, b.graph.array(b.array(name + ".weight", *matrix)), False, True)
