"""ModernBERT (gte-modernbert and its rerankers): rotary positions, gated layers, windows in most
layers.

Two of three layers have a window. Reference: transformers,
models/modernbert/modeling_modernbert.py. A norm stands before each half of a layer, except the
mixer of the first layer.
"""

from dataclasses import KW_ONLY, dataclass

from ouzel.backends.openvino.encoder_model import EncoderModel, ScorePooling
from ouzel.backends.openvino.graph.activations import activate, read_activation
from ouzel.backends.openvino.graph.encoder import EncoderBuilder
from ouzel.backends.openvino.graph.nodes import Node, split
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.graph.rotation import Angles, rotate_rows
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config.weights import WeightPlan

_SLIDING, _FULL = "sliding_attention", "full_attention"


def build(config: HfConfig, weights: Weights, plan: WeightPlan, num_labels: int) -> EncoderModel:
    config = config.with_defaults(max_position_embeddings=8192, local_attention=128)
    size = config.size("hidden_size")
    norm = Norm(
        config.number("norm_eps", 1e-5), is_centred=True, has_bias=config.flag("norm_bias", False)
    )
    prefix = "model." if weights.has("model.embeddings.tok_embeddings.weight") else ""
    b = EncoderBuilder(weights, plan, prefix)
    rows = b.embed("embeddings.tok_embeddings", config.size("vocab_size"), size, b.token_ids)
    rows = b.norm(rows, "embeddings.norm", size, norm)
    kinds = layer_kinds(config)
    head_dim = size // config.size("num_attention_heads")
    ropes = {kind: _rope(config, kind, head_dim) for kind in (_FULL, _SLIDING) if kind in kinds}
    angles = {kind: b.angles(rope, kind) for kind, rope in ropes.items()}
    for layer, kind in enumerate(kinds):
        rows = _layer(
            b, rows, layer, _LayerShape(config, norm, angles[kind], has_window=kind == _SLIDING)
        )
    rows = b.norm(rows, "final_norm", size, norm)
    pooling = _score_pooling(config)
    if num_labels:
        rows = _scores(b, rows, config, norm, num_labels)
    return b.encoder_model(
        rows,
        hidden_size=size,
        vocab_size=config.size("vocab_size"),
        max_positions=config.size("max_position_embeddings"),
        num_labels=num_labels,
        score_pooling=pooling,
        window=config.size("local_attention") // 2,
        left_out=("head.", "decoder."),
    )


def layer_kinds(config: HfConfig) -> list[str]:
    num_layers = config.size("num_hidden_layers")
    if config.has("layer_types"):
        kinds = config.texts("layer_types", num_layers)
        if not {*kinds} <= {_SLIDING, _FULL}:
            raise config.refuse("layer_types", f"{_SLIDING} and {_FULL}")
        return kinds
    interval = config.size("global_attn_every_n_layers", 3)
    return [_SLIDING if layer % interval else _FULL for layer in range(num_layers)]


def _rope(config: HfConfig, kind: str, head_dim: int) -> Rope:
    older, theta = (
        ("global_rope_theta", 160_000.0) if kind == _FULL else ("local_rope_theta", 10_000.0)
    )
    sections = config.section("rope_parameters") or HfConfig({})
    section = sections.section(kind) or HfConfig({})
    parameters = section.with_defaults(rope_theta=config.number(older, theta)).values
    return read_rope(config.with_values(rope_parameters=parameters, rope_scaling=None), head_dim)


@dataclass(frozen=True, slots=True)
class _LayerShape:
    config: HfConfig
    norm: Norm
    angles: Angles
    _: KW_ONLY
    has_window: bool


def _layer(b: EncoderBuilder, rows: Node, layer: int, shape: _LayerShape) -> Node:
    config, norm = shape.config, shape.norm
    prefix = f"layers.{layer}."
    size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
    inner, head_dim = config.size("intermediate_size"), size // num_heads
    attention_bias, mlp_bias = config.flag("attention_bias", False), config.flag("mlp_bias", False)
    before = rows if layer == 0 else b.norm(rows, f"{prefix}attn_norm", size, norm)
    query, key, value = split(
        b.linear(before, f"{prefix}attn.Wqkv", size, 3 * size, has_bias=attention_bias),
        size,
        size,
        size,
    )
    query, key = (rotate_rows(each, num_heads, head_dim, shape.angles) for each in (query, key))
    mixed = b.compute_attention((query, key, value), num_heads, has_window=shape.has_window)
    rows = ops.add(rows, b.linear(mixed, f"{prefix}attn.Wo", size, size, has_bias=attention_bias))
    before = b.norm(rows, f"{prefix}mlp_norm", size, norm)
    gated, plain = split(
        b.linear(before, f"{prefix}mlp.Wi", size, 2 * inner, has_bias=mlp_bias), inner, inner
    )
    product = ops.multiply(
        activate(gated, read_activation(config, "hidden_activation", "gelu")), plain
    )
    return ops.add(rows, b.linear(product, f"{prefix}mlp.Wo", inner, size, has_bias=mlp_bias))


def _score_pooling(config: HfConfig) -> ScorePooling:
    pooling = config.text("classifier_pooling", "cls")
    if pooling == "mean":
        return "mean"
    if pooling != "cls":
        raise config.refuse("classifier_pooling", "cls, mean")
    return "cls"


def _scores(b: EncoderBuilder, rows: Node, config: HfConfig, norm: Norm, num_labels: int) -> Node:
    size, head = config.size("hidden_size"), b.without_prefix()
    dense = head.linear(
        b.pooled(rows), "head.dense", size, size, has_bias=config.flag("classifier_bias", False)
    )
    activation = read_activation(config, "classifier_activation", "gelu")
    return head.linear(
        head.norm(activate(dense, activation), "head.norm", size, norm),
        "classifier",
        size,
        num_labels,
    )
