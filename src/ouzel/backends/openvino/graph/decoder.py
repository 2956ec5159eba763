"""Llama and its many kin share this decoder.

x = embedding(token ids); per layer x += attention(norm(x)) and x += mlp(norm(x)); logits = head(norm(x)) on the
sampled rows. What differs between families are the fields of DecoderShape, or the feed-forward layer that they give.
Families whose layers are arranged otherwise put the same parts together themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp
from ouzel.backends.openvino.graph.nodes import Node, scaled
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.graph.self_attention import AttentionShape, self_attention
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops

FeedForward = Callable[[Builder, Node, int], Node]  # rows and layer


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """It has the sizes and switches of one checkpoint."""

    num_layers: int
    vocab_size: int
    norm: Norm
    rope: Rope
    attention: AttentionShape
    tied_embeddings: bool
    sliding_windows: tuple[int, ...] = ()  # one per layer, 0 is none; empty: none anywhere
    unrotated_layers: frozenset[int] = frozenset()  # layers without rotary positions
    embedding_factor: float = 1.0
    residual_factor: float = 1.0  # of what each half of a layer adds
    logits_factor: float = 1.0

    @classmethod
    def read(
        cls,
        config: HfConfig,
        *,
        tied_by_default: bool = False,  # where config.json does not say
        default_theta: float = 10000.0,
        default_head_dim: int | None = None,  # None: the hidden size divided by the heads
    ) -> "DecoderShape":
        """Reads what all families write the same way; `dataclasses.replace` adds what is a family's own."""
        norm = Norm(config.number("rms_norm_eps", 1e-6))
        attention = AttentionShape.read(config, norm, default_head_dim=default_head_dim)
        return cls(
            num_layers=config.size("num_hidden_layers"),
            vocab_size=config.size("vocab_size"),
            norm=norm,
            rope=read_rope(config, attention.head_dim, default_theta),
            attention=attention,
            tied_embeddings=config.flag("tie_word_embeddings", tied_by_default),
        )

    def with_attention(self, **changes: object) -> "DecoderShape":
        return replace(self, attention=replace(self.attention, **changes))  # type: ignore[arg-type]


def upper_sliding_windows(config: HfConfig) -> tuple[int, ...]:
    """Reads them as Qwen writes them: `use_sliding_window`, then by `layer_types` or from `max_window_layers` on."""
    num_layers = config.size("num_hidden_layers")
    if not config.flag("use_sliding_window", False) or not config.has("sliding_window"):
        return (0,) * num_layers
    window = config.size("sliding_window")
    if config.has("layer_types"):
        kinds = config.texts("layer_types", num_layers)
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    first = config.integer("max_window_layers", num_layers)
    return tuple(window if layer >= first else 0 for layer in range(num_layers))


def feed_forward_of(shape: MlpShape) -> FeedForward:
    return lambda b, rows, layer: gated_mlp(b, rows, f"model.layers.{layer}.mlp.", shape)


def build_decoder(b: Builder, shape: DecoderShape, feed_forward: FeedForward) -> LanguageModel:
    hidden_size = shape.attention.hidden_size
    angles = b.angles(shape.rope)
    embedding = b.embedding("model.embed_tokens", shape.vocab_size, hidden_size)
    x = scaled(b.embedded(embedding), shape.embedding_factor)
    for layer in range(shape.num_layers):
        prefix = f"model.layers.{layer}."
        attended = self_attention(
            b,
            b.norm(x, prefix + "input_layernorm", hidden_size, shape.norm),
            prefix + "self_attn.",
            layer,
            shape.attention,
            angles=None if layer in shape.unrotated_layers else angles,
            sliding_window=shape.sliding_windows[layer] if shape.sliding_windows else 0,
        )
        x = ops.add(x, scaled(attended, shape.residual_factor))
        inner = feed_forward(b, b.norm(x, prefix + "post_attention_layernorm", hidden_size, shape.norm), layer)
        x = ops.add(x, scaled(inner, shape.residual_factor))
    x = b.norm(b.graph.sampled(x), "model.norm", hidden_size, shape.norm)
    head = embedding if shape.tied_embeddings else b.head("lm_head", shape.vocab_size, hidden_size)
    return b.language_model(
        scaled(ops.matmul(x, head, False, True), shape.logits_factor),
        hidden_size=hidden_size,
        vocab_size=shape.vocab_size,
        max_positions=shape.rope.max_positions,
    )
