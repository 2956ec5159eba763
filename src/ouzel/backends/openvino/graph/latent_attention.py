"""Builds multi-head latent attention (DeepSeek-V2, 2024), where one row stands for all keys and
values.

The rows of `kv_b_proj` would turn a latent row into the key and the value of each head. Products of
queries and keys stay the same if the key's half is applied to the query instead, and the value's
half to the result of attention. So attention runs on the latent rows: one key-value head, whose
value is the latent row, and whose key is the latent row and a rotary key beside it, which all heads
share. Only these are cached.

Reference: transformers, models/deepseek_v2/modeling_deepseek_v2.py.
"""

import math
from dataclasses import dataclass

from ouzel.backends.openvino.graph.attention import cache_inputs, paged_attention
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, Part
from ouzel.backends.openvino.graph.nodes import Node, integers, merge_heads, split, split_heads
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rotation import Angles, rotate
from ouzel.backends.openvino.library import ops
from ouzel.checkpoint.context_length import rope_section, rope_type
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

NORM = Norm(1e-6)  # norm of latent rows, regardless of config.json, which has a norm for the layers


@dataclass(frozen=True, kw_only=True)
class LatentShape:
    """The sizes of latent attention. A head has dimensions without positions, then rotary
    ones.
    """

    hidden_size: int
    num_heads: int
    query_rank: int  # size of the latent rows of queries; 0: queries are projected in one step
    rank: int  # size of the latent rows of keys and values
    plain_dim: int
    rotary_dim: int
    value_dim: int
    scale: float  # factor of the products of queries and keys
    is_paired: bool  # rotary coordinates lie side by side, not in halves
    has_bias: bool

    @classmethod
    def read(cls, config: HfConfig, *, is_paired: bool) -> "LatentShape":
        hidden_size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
        if (num_kv_heads := config.size("num_key_value_heads", num_heads)) != num_heads:
            raise ModelLoadError(
                f"config.json: num_key_value_heads must be num_attention_heads {num_heads} in "
                f"latent attention, found {num_kv_heads}"
            )
        plain_dim, rotary_dim = config.size("qk_nope_head_dim"), config.size("qk_rope_head_dim")
        return cls(
            hidden_size=hidden_size,
            num_heads=num_heads,
            query_rank=config.size("q_lora_rank") if config.has("q_lora_rank") else 0,
            rank=config.size("kv_lora_rank"),
            plain_dim=plain_dim,
            rotary_dim=rotary_dim,
            value_dim=config.size("v_head_dim", hidden_size // num_heads),
            scale=(plain_dim + rotary_dim) ** -0.5 * yarn_factor(config),
            is_paired=is_paired,
            has_bias=config.flag("attention_bias", False),
        )

    @property
    def head_dim(self) -> int:
        return self.plain_dim + self.rotary_dim


def yarn_factor(config: HfConfig) -> float:
    """Returns the factor of the products for an extended context (`mscale_all_dim`), else 1."""
    scaling = rope_section(config)
    weight = scaling.number("mscale_all_dim", 0.0)
    if rope_type(scaling) == "default" or not weight or (factor := scaling.number("factor")) <= 1:
        return 1.0
    return (0.1 * weight * math.log(factor) + 1) ** 2


def read_decoder_shape(config: HfConfig) -> DecoderShape:
    """Reads the rest of the decoder; its rotary positions have the size of the heads'
    rotary part.
    """
    rotary = HfConfig(config.values | {"head_dim": config.size("qk_rope_head_dim")})
    return DecoderShape.read(rotary)


def make_latent_attention(b: Builder, decoder: DecoderShape, shape: LatentShape) -> Part:
    """Returns latent attention; adds the inputs for the angles once for all layers."""
    angles = b.angles(decoder.rope)
    return lambda b, rows, layer: latent_attention(
        b, rows, f"model.layers.{layer}.self_attn.", layer, shape, angles=angles
    )


def latent_attention(
    b: Builder, rows: Node, prefix: str, layer: int, shape: LatentShape, *, angles: Angles
) -> Node:
    """Computes latent attention; takes and returns [T, hidden_size]."""
    num_heads, rank, head_rows = shape.num_heads, shape.rank, shape.plain_dim + shape.value_dim
    plain, rotary = split(
        project_queries(b, rows, prefix, shape), shape.plain_dim, shape.rotary_dim
    )
    latent, rotary_key = project_latents(b, rows, prefix, shape)

    def read_head_rows(begin: int, end: int) -> Node:
        return b.matrix_per_head(
            prefix + "kv_b_proj", num_heads, head_rows, rank, range(begin, end)
        )

    query = per_head(plain, read_head_rows(0, shape.plain_dim), is_transposed=False)
    attended = paged_attention(
        b.graph,
        ops.concat([query, rotate(rotary, angles, shape.rotary_dim)], -1),
        ops.concat(
            [split_heads(latent, 1, rank), rotate(rotary_key, angles, shape.rotary_dim)], -1
        ),
        latent,
        cache_inputs(b.graph, layer),
        num_kv_heads=1,
        key_dim=rank + shape.rotary_dim,
        value_dim=rank,
        scale=shape.scale,
    )
    to_values = read_head_rows(shape.plain_dim, head_rows)
    values = merge_heads(
        per_head(split_heads(attended, num_heads, rank), to_values, is_transposed=True)
    )
    num_columns = num_heads * shape.value_dim
    return b.linear(
        values, prefix + "o_proj", num_columns, shape.hidden_size, has_bias=shape.has_bias
    )


def project_queries(b: Builder, rows: Node, prefix: str, shape: LatentShape) -> Node:
    """Returns queries, [T, heads, head_dim]."""
    hidden, num_rows = shape.hidden_size, shape.num_heads * shape.head_dim
    order = halves_last(shape.plain_dim, shape)
    if not shape.query_rank:
        queries = b.linear(rows, prefix + "q_proj", hidden, num_rows, row_order=order)
    else:
        latent = b.linear(
            rows, prefix + "q_a_proj", hidden, shape.query_rank, has_bias=shape.has_bias
        )
        latent = b.norm(latent, prefix + "q_a_layernorm", shape.query_rank, NORM)
        queries = b.linear(latent, prefix + "q_b_proj", shape.query_rank, num_rows, row_order=order)
    return split_heads(queries, shape.num_heads, shape.head_dim)


def project_latents(b: Builder, rows: Node, prefix: str, shape: LatentShape) -> tuple[Node, Node]:
    """Returns the latent rows [T, rank] and the rotary keys [T, 1, rotary_dim], not yet rotated."""
    both = b.linear(
        rows,
        prefix + "kv_a_proj_with_mqa",
        shape.hidden_size,
        shape.rank + shape.rotary_dim,
        has_bias=shape.has_bias,
        row_order=halves_last(shape.rank, shape),
    )
    latent, rotary_key = split(both, shape.rank, shape.rotary_dim)
    latent = b.norm(latent, prefix + "kv_a_layernorm", shape.rank, NORM)
    return latent, split_heads(rotary_key, 1, shape.rotary_dim)


def halves_last(num_plain: int, shape: LatentShape) -> tuple[int, ...] | None:
    """Returns the order that brings rotary pairs, after `num_plain` rows, to halves for
    `rotate`.
    """
    if not shape.is_paired:
        return None
    end = num_plain + shape.rotary_dim
    return (*range(num_plain), *range(num_plain, end, 2), *range(num_plain + 1, end, 2))


def per_head(heads: Node, matrices: Node, *, is_transposed: bool) -> Node:
    """Multiplies [T, heads, m] by [heads, m, n] for each head; returns [T, heads, n].

    With `is_transposed` the matrices are [heads, n, m].
    """
    swapped = integers(1, 0, 2)
    return ops.transpose(
        ops.matmul(ops.transpose(heads, swapped), matrices, False, is_transposed), swapped
    )
