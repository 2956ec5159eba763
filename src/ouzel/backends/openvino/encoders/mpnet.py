"""MPNet (all-mpnet-base-v2, multi-qa-mpnet) is BERT with a bias of attention by distance.

Reference: transformers, models/mpnet/modeling_mpnet.py. All layers share the bias, which depends on
the bucket of the distance of two tokens. Tokens have no types. Positions count from 2 for every
`pad_token_id`. The head is RoBERTa's.
"""

import numpy as np

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.encoders.bert import LEFT_OUT
from ouzel.backends.openvino.encoders.roberta import score_rows
from ouzel.backends.openvino.graph.bert import (
    BertShape,
    EmbeddingSizes,
    LayerNames,
    build_layers,
    embed_tokens,
)
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_NAMES = LayerNames(
    projections=("attention.attn.q", "attention.attn.k", "attention.attn.v"),
    mixed="attention.attn.o",
    mixed_norm="attention.LayerNorm",
)
_PADDING_ID = 1
_NUM_BUCKETS = 32  # transformers computes with this number
_BUCKETS_OF_A_SIDE = _NUM_BUCKETS // 2
_NUM_EXACT = _BUCKETS_OF_A_SIDE // 2  # distances with a bucket of their own; further ones share


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(max_position_embeddings=512)
    shape = BertShape.read(config)
    sizes = EmbeddingSizes.read(config, has_types=False)
    prefix = "mpnet." if weights.has("mpnet.embeddings.word_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    max_positions = sizes.num_positions - _PADDING_ID - 1
    if max_positions < 1:
        raise config.refuse("max_position_embeddings", ">= 3, as positions begin at 2")
    rows = embed_tokens(b, sizes, shape.norm)
    bias = _position_bias(b, config, shape.num_heads, max_positions)
    rows = build_layers(b, rows, shape, names=_NAMES, bias=bias)
    if num_labels:
        rows = score_rows(b, rows, shape.hidden_size, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=shape.hidden_size,
        vocab_size=sizes.vocab_size,
        max_positions=max_positions,
        num_labels=num_labels,
        padding_id=_PADDING_ID,
        left_out=(*LEFT_OUT, "mpnet.embeddings.position_ids", "mpnet.pooler."),
    )


def _position_bias(b: EncoderBuilder, config: HfConfig, num_heads: int, max_positions: int) -> Node:
    num_stored = config.size("relative_attention_num_buckets", _NUM_BUCKETS)
    if num_stored < _NUM_BUCKETS:
        raise config.refuse("relative_attention_num_buckets", f">= {_NUM_BUCKETS}")
    values = b.array("encoder.relative_attention_bias.weight", num_stored, num_heads)
    buckets = [find_bucket(distance) for distance in range(1 - max_positions, max_positions)]
    return b.bias_by_distance(np.ascontiguousarray(values[buckets].T))


def find_bucket(distance: int) -> int:
    """Returns the bucket of a key `distance` places behind its query.

    A bucket of far distances ends where they are larger by the square root of 2; the last one has
    no end.
    """
    side = _BUCKETS_OF_A_SIDE if distance > 0 else 0
    size = abs(distance)
    if size < _NUM_EXACT:
        return side + size
    num_steps = (size * size // _NUM_EXACT**2).bit_length() - 1  # floor(2 * log2(size / 8))
    return side + min(_NUM_EXACT + num_steps, _BUCKETS_OF_A_SIDE - 1)
