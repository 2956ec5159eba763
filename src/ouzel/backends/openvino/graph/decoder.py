"""Llama, mistral, qwen2, qwen3 and their like share this decoder, an OpenVINO graph over a paged KV cache.

x = embedding(token ids); per layer x += o(attention(rope(q), rope(k), v)) and x += down(silu(gate) * up), each on
RMS-normed x; logits = lm_head(norm(x)) on the sampled rows. What differs between families are the fields of
DecoderShape.
"""

from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.graph.paged import Node, PagedGraph
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.source import Weights
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """It has the sizes and switches of one checkpoint."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    epsilon: float  # of the RMS norms
    rope: Rope
    tied_embeddings: bool
    qkv_bias: bool = False
    output_bias: bool = False  # of the attention's output projection
    mlp_bias: bool = False
    qk_norm: bool = False  # RMS norm over each head of queries and keys
    sliding_windows: tuple[int, ...] = ()  # one per layer, 0 is none; empty: none anywhere
    unrotated_layers: frozenset[int] = frozenset()  # layers without rotary positions

    @classmethod
    def read(
        cls,
        config: HfConfig,
        *,
        qkv_bias: bool = False,
        output_bias: bool = False,
        mlp_bias: bool = False,
        qk_norm: bool = False,
        sliding_windows: tuple[int, ...] = (),
        unrotated_layers: frozenset[int] = frozenset(),
        tied_by_default: bool = False,  # where config.json does not say
        default_theta: float = 10000.0,
        default_head_dim: int | None = None,  # None: the hidden size divided by the heads
    ) -> "DecoderShape":
        """Reads what all families write the same way in config.json; the keywords are the family's own."""
        if (activation := config.text("hidden_act", "silu")) not in {"silu", "swish"}:
            raise ModelLoadError(f"config.json: hidden_act {activation} is not supported, only silu")
        hidden_size, num_heads = config.size("hidden_size"), config.size("num_attention_heads")
        head_dim = config.size("head_dim", default_head_dim or hidden_size // num_heads)
        num_kv_heads = config.size("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise ModelLoadError(
                f"config.json: num_attention_heads {num_heads} is no multiple of num_key_value_heads {num_kv_heads}"
            )
        return cls(
            hidden_size=hidden_size,
            intermediate_size=config.size("intermediate_size"),
            num_layers=config.size("num_hidden_layers"),
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            vocab_size=config.size("vocab_size"),
            epsilon=config.number("rms_norm_eps", 1e-6),
            rope=read_rope(config, head_dim, default_theta),
            tied_embeddings=config.flag("tie_word_embeddings", tied_by_default),
            qkv_bias=qkv_bias,
            output_bias=output_bias,
            mlp_bias=mlp_bias,
            qk_norm=qk_norm,
            sliding_windows=sliding_windows,
            unrotated_layers=unrotated_layers,
        )


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


def build_decoder(shape: DecoderShape, weights: Weights, encoding: Encoding) -> LanguageModel:
    decoder = Decoder(shape, weights, encoding)
    return LanguageModel(
        graph=decoder.build(),
        arrays=decoder.graph.arrays,
        rope=shape.rope,
        hidden_size=shape.hidden_size,
        vocab_size=shape.vocab_size,
        max_positions=shape.rope.max_positions,
    )


class Decoder:
    """Walks through the layers once, asking for each weight as it is used."""

    def __init__(self, shape: DecoderShape, weights: Weights, encoding: Encoding) -> None:
        self.shape = shape
        self.graph = PagedGraph(shape.head_dim)
        self._weights = weights
        self._encoding = encoding
        # The embedding and the output layer suffer most from few bits: int4 models keep them in int8.
        self._outer_encoding: Encoding = "int8" if encoding == "int4" else encoding

    def build(self) -> ov.Model:
        shape, graph = self.shape, self.graph
        embedding = self._outer_matrix("model.embed_tokens")
        x = ops.gather(embedding, graph.token_ids, ops.constant(np.int64(0)))
        for layer in range(shape.num_layers):
            prefix = f"model.layers.{layer}."
            x = ops.add(x, self._attention(self._norm(x, prefix + "input_layernorm"), prefix + "self_attn.", layer))
            x = ops.add(x, self._mlp(self._norm(x, prefix + "post_attention_layernorm"), prefix + "mlp."))
        x = self._norm(graph.sampled(x), "model.norm")
        head = embedding if shape.tied_embeddings else self._outer_matrix("lm_head")
        return graph.finish(graph.linear(x, head))

    def _attention(self, x: Node, prefix: str, layer: int) -> Node:
        shape, graph = self.shape, self.graph
        sizes = [heads * shape.head_dim for heads in (shape.num_heads, shape.num_kv_heads, shape.num_kv_heads)]
        query, key, value = (
            self._linear(x, prefix + name, shape.hidden_size, size, shape.qkv_bias)
            for name, size in zip(("q_proj", "k_proj", "v_proj"), sizes, strict=True)
        )
        query, key = graph.heads(query, shape.num_heads), graph.heads(key, shape.num_kv_heads)
        if shape.qk_norm:
            query = self._norm(query, prefix + "q_norm", shape.head_dim)
            key = self._norm(key, prefix + "k_norm", shape.head_dim)
        if layer not in shape.unrotated_layers:
            query, key = graph.rotate(query), graph.rotate(key)
        window = shape.sliding_windows[layer] if shape.sliding_windows else 0
        attended = graph.attention(query, key, value, shape.num_kv_heads, window)
        return self._linear(attended, prefix + "o_proj", sizes[0], shape.hidden_size, shape.output_bias)

    def _mlp(self, x: Node, prefix: str) -> Node:
        hidden, inner, bias = self.shape.hidden_size, self.shape.intermediate_size, self.shape.mlp_bias
        gate = self._linear(x, prefix + "gate_proj", hidden, inner, bias)
        up = self._linear(x, prefix + "up_proj", hidden, inner, bias)
        return self._linear(ops.multiply(ops.swish(gate), up), prefix + "down_proj", inner, hidden, bias)

    def _linear(self, x: Node, name: str, columns: int, rows: int, has_bias: bool) -> Node:
        weight = self.graph.matrix(self._weights.matrix((name + ".weight",), (rows,), columns, self._encoding))
        bias = self._weights.vector((name + ".bias",), (rows,)) if has_bias else None
        return self.graph.linear(x, weight, bias)

    def _norm(self, x: Node, name: str, size: int | None = None) -> Node:
        weight = self._weights.vector((name + ".weight",), (size or self.shape.hidden_size,))
        return self.graph.rms_norm(x, weight, self.shape.epsilon)

    def _outer_matrix(self, name: str) -> Node:
        """Makes the embedding or the output layer."""
        rows, columns = self.shape.vocab_size, self.shape.hidden_size
        return self.graph.matrix(self._weights.matrix((name + ".weight",), (rows,), columns, self._outer_encoding))
