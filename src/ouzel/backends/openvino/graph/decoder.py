"""Builds the decoder that Llama and most other families share.

x = embedding(token ids); per layer x += mixer(norm(x)) and x += feed_forward(norm(x)); logits =
head(norm(x)). Behind the last mixer no row depends on another, so the graph computes only the
sampled rows from there on. The mixer is self-attention, unless a family gives another. All other
differences between families are fields of DecoderShape. Families with another order of layers
combine the same parts themselves.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.mlp import MlpShape, gated_mlp, plain_mlp
from ouzel.backends.openvino.graph.nodes import Node, scaled
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.position_table import PositionTable, add_positions
from ouzel.backends.openvino.graph.query_scale import QueryScale
from ouzel.backends.openvino.graph.rope import Rope, read_rope
from ouzel.backends.openvino.graph.rotation import Angles
from ouzel.backends.openvino.graph.self_attention import AttentionShape, self_attention
from ouzel.backends.openvino.language_model import LanguageModel, PredictionGraphs
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError

# half of a layer: takes rows [T, hidden_size] and the number of the layer; gives such rows
Part = Callable[[Builder, Node, int], Node]
Head = Callable[[Node], Node]  # takes rows [S, hidden_size]; gives logits
Predict = Callable[[Builder, Matrix, Head], PredictionGraphs]  # takes the embedding and the head


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorms:
    """A layer's norms, before and after each half; empty if there is none.

    The halves of a parallel layer share the norm before the mixer if there is none before the MLP.
    """

    before_mixer: str = "input_layernorm"
    after_mixer: str = ""
    before_mlp: str = "post_attention_layernorm"
    after_mlp: str = ""
    # norms of the sums after each half, which are the rows that the next half takes
    of_mixed: str = ""
    of_layer: str = ""


NORMS_AFTER = LayerNorms(
    before_mixer="",
    after_mixer="post_attention_layernorm",
    before_mlp="",
    after_mlp="post_feedforward_layernorm",
)

SHARED_NORM = LayerNorms(before_mlp="")


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """The sizes and switches of the decoder of one checkpoint."""

    num_layers: int
    vocab_size: int
    norm: Norm
    rope: Rope  # the rope of all layers, unless `layer_ropes` has others
    attention: AttentionShape
    tied_embeddings: bool
    has_head_bias: bool = False
    layer_norms: LayerNorms = LayerNorms()
    embedding_norm: str = ""  # the norm of the embeddings; empty: none
    final_norm: str = "model.norm"  # empty: none
    embedding_size: int = 0  # columns of embedding and head, if projections lead to the hidden size
    is_parallel: bool = False  # both halves of a layer take the rows that enter the layer
    # tokens by layer, 0: no window; empty: no layer has a window
    sliding_windows: tuple[int, ...] = ()
    # the rope of each layer, None: no rotary positions; empty: every layer has `rope`
    layer_ropes: tuple[Rope | None, ...] = ()
    position_table: PositionTable | None = None  # None: positions are rotary
    query_scale: QueryScale | None = None
    embedding_factor: float = 1.0
    scales_images: bool = False  # the embedding factor applies to the features of images, too
    residual_factor: float = 1.0  # factor of the rows that each half of a layer adds
    logits_factor: float = 1.0
    logits_softcap: float = 0.0  # logits become softcap * tanh(logits / softcap); 0: they stay

    @classmethod
    def read(
        cls,
        config: HfConfig,
        *,
        rotates_partly: bool = False,  # the family supports `partial_rotary_factor`
    ) -> "DecoderShape":
        """Reads the keys that all families write the same way.

        `dataclasses.replace` adds the settings of a family. A family with other defaults gives them
        by `HfConfig.with_defaults`.
        """
        norm = Norm(config.number("rms_norm_eps", 1e-6))
        attention = AttentionShape.read(config, norm)
        return cls(
            num_layers=config.size("num_hidden_layers"),
            vocab_size=config.size("vocab_size"),
            norm=norm,
            rope=read_rope(config, attention.head_dim, rotates_partly=rotates_partly),
            attention=attention,
            tied_embeddings=config.flag("tie_word_embeddings", False),
        )

    @property
    def max_positions(self) -> int:
        """Returns the tokens of the longest request."""
        if self.position_table is not None:
            return self.position_table.num_positions
        return self.rope.max_positions

    def find_rope(self, layer: int) -> Rope | None:
        """Returns the rope of a layer, None if the layer has no rotary positions."""
        if self.position_table is not None:
            return None
        return self.layer_ropes[layer] if self.layer_ropes else self.rope

    def without_rope(self, layers: Collection[int]) -> "DecoderShape":
        """Returns the shape without rotary positions in these layers."""
        ropes = tuple(
            None if layer in layers else self.find_rope(layer) for layer in range(self.num_layers)
        )
        return replace(self, layer_ropes=ropes)

    def with_attention(self, **changes: object) -> "DecoderShape":
        return replace(self, attention=replace(self.attention, **changes))  # type: ignore[arg-type]


def equal_windows(config: HfConfig) -> tuple[int, ...]:
    """Returns `sliding_window` for every layer, 0 if config.json has none."""
    window = config.size("sliding_window") if config.has("sliding_window") else 0
    return (window,) * config.size("num_hidden_layers")


def upper_sliding_windows(config: HfConfig) -> tuple[int, ...]:
    """Reads the windows as Qwen writes them: `use_sliding_window`, then `layer_types`.

    Without `layer_types` the layers from `max_window_layers` on have a window.
    """
    config = config.with_defaults(sliding_window=4096, max_window_layers=28)
    num_layers = config.size("num_hidden_layers")
    if not config.flag("use_sliding_window", False) or not config.has("sliding_window"):
        return (0,) * num_layers
    first = config.integer("max_window_layers")
    return sliding_windows(config, lambda layer: layer >= first)


def every_layer_but(interval: int) -> Callable[[int], bool]:
    """Returns a function for `sliding_windows`: every layer has a window except each
    `interval`-th.
    """
    return lambda layer: (layer + 1) % interval != 0


def sliding_windows(config: HfConfig, has_window: Callable[[int], bool]) -> tuple[int, ...]:
    """Returns `sliding_window` for each layer with a window, 0 for the others.

    `layer_types` decides, or `has_window` if `layer_types` is missing. Raises ModelLoadError for
    unknown types, or if a layer has a window without a size.
    """
    num_layers = config.size("num_hidden_layers")
    kinds = [
        "sliding_attention" if has_window(layer) else "full_attention"
        for layer in range(num_layers)
    ]
    if config.has("layer_types"):
        kinds = config.texts("layer_types", num_layers)
    for kind in kinds:
        if kind not in ("sliding_attention", "full_attention"):
            raise ModelLoadError(
                "config.json: layer_types must be of sliding_attention and full_attention, found "
                f"{brief(kind)}"
            )
    return tuple(
        config.size("sliding_window") if kind == "sliding_attention" else 0 for kind in kinds
    )


def make_feed_forward(shape: MlpShape, name: str = "mlp") -> Part:
    """Returns the feed-forward half of a layer.

    Its tensors have `name` in their names, unless it is empty.
    """
    mlp = gated_mlp if shape.is_gated else plain_mlp
    part = f".{name}." if name else "."
    return lambda b, rows, layer: mlp(b, rows, f"model.layers.{layer}{part}", shape)


def choose_by_layer(one: Part, other: Part, layers_of_one: frozenset[int]) -> Part:
    """Returns a part that builds `one` in `layers_of_one`, and `other` in all other layers."""
    return lambda b, rows, layer: (one if layer in layers_of_one else other)(b, rows, layer)


def make_attention(b: Builder, shape: DecoderShape) -> Part:
    """Returns self-attention; adds the inputs for the angles once for all layers."""
    find_angles = add_angles(b, shape)
    query_scale = b.query_scale(shape.query_scale) if shape.query_scale else None

    def attention(b: Builder, rows: Node, layer: int) -> Node:
        return self_attention(
            b,
            rows,
            f"model.layers.{layer}.{shape.attention.name}.",
            layer,
            shape.attention,
            angles=find_angles(layer),
            query_scale=query_scale,
            sliding_window=shape.sliding_windows[layer] if shape.sliding_windows else 0,
        )

    return attention


def embedded_rows(b: Builder, embeddings: Node, shape: DecoderShape) -> Node:
    """Returns the rows of the first layer: scaled, with features of images and with positions."""
    size, factor = shape.attention.hidden_size, shape.embedding_factor
    if shape.embedding_size:
        embeddings = b.linear(embeddings, "model.project_in", shape.embedding_size, size)
    if shape.scales_images and b.scales_features:
        rows = scaled(b.with_images(embeddings, size), factor)
    else:
        rows = b.with_images(scaled(embeddings, factor), size)
    if shape.embedding_norm:
        rows = b.norm(rows, shape.embedding_norm, size, shape.norm)
    if shape.position_table is None:
        return rows
    return add_positions(b, rows, shape.position_table, size)


class TakesAngles(Protocol):
    """A builder of a decoder or of an encoder."""

    def angles(self, rope: Rope, name: str = ...) -> Angles: ...


def add_angles(b: TakesAngles, shape: DecoderShape) -> Callable[[int], Angles | None]:
    """Adds inputs for the angles of each rope; returns a function from the number of a layer to
    its angles.
    """
    ropes = [shape.find_rope(layer) for layer in range(shape.num_layers)]
    angles: dict[int, Angles] = {}
    for rope in ropes:
        if rope is not None and id(rope) not in angles:
            name = "default" if rope is shape.rope else f"kind{len(angles)}"
            angles[id(rope)] = b.angles(rope, name)
    return lambda layer: angles.get(id(ropes[layer]))


def build_decoder(
    b: Builder,
    shape: DecoderShape,
    feed_forward: Part,
    mixer: Part | None = None,
    predict: Predict | None = None,
) -> LanguageModel:
    """Builds the decoder; `predict` makes the graphs for further tokens if the user wants them."""
    hidden_size = shape.attention.hidden_size
    mixer = mixer or make_attention(b, shape)
    embedding_size = shape.embedding_size or hidden_size
    embedding = b.embedding(
        "model.embed_tokens", shape.vocab_size, embedding_size, is_head=shape.tied_embeddings
    )
    x = embedded_rows(b, b.embed(embedding), shape)
    for layer in range(shape.num_layers):
        b.draft_rows.note_input(x, layer)
        x = b.add_layer_features(decoder_layer(b, x, layer, shape, (mixer, feed_forward)), layer)
    x = b.draft_rows.end_layers(b.graph, x, shape.num_layers)
    if shape.final_norm:
        x = b.norm(x, shape.final_norm, hidden_size, shape.norm)
    if b.vector_head is not None:
        return b.vector_model(
            x,
            hidden_size=hidden_size,
            vocab_size=shape.vocab_size,
            max_positions=shape.max_positions,
        )
    if shape.embedding_size:
        x = b.linear(x, "model.project_out", hidden_size, embedding_size)
    head = embedding
    if not shape.tied_embeddings:
        head = b.head("lm_head", shape.vocab_size, embedding_size)

    head_bias = b.array("lm_head.bias", shape.vocab_size) if shape.has_head_bias else None

    def compute_logits(rows: Node) -> Node:
        logits = scaled(b.logits(rows, head, head_bias), shape.logits_factor)
        return softcapped(logits, shape.logits_softcap)

    prediction = b.build_draft_head(embedding)
    if b.predicts and predict is not None:
        prediction = predict(b, embedding, compute_logits)
    return b.language_model(
        compute_logits(x) if prediction is None or prediction.head is None else x,
        hidden_size=hidden_size,
        vocab_size=shape.vocab_size,
        max_positions=shape.max_positions,
        prediction=prediction,
    )


def decoder_layer(
    b: Builder, x: Node, layer: int, shape: DecoderShape, halves: tuple[Part, Part]
) -> Node:
    names, (mixer, feed_forward) = shape.layer_norms, halves

    def norm(rows: Node, name: str) -> Node:
        if not name:
            return rows
        full_name = f"model.layers.{layer}.{name}"
        return b.norm(rows, full_name, shape.attention.hidden_size, shape.norm)

    rows = norm(x, names.before_mixer)
    mixed = mixer(b, rows, layer)
    if layer == shape.num_layers - 1:
        x, rows, mixed = (b.graph.sample_rows(each) for each in (x, rows, mixed))
    mixed = ops.add(x, scaled(norm(mixed, names.after_mixer), shape.residual_factor))
    mixed = norm(mixed, names.of_mixed)
    if not shape.is_parallel:
        rows = norm(mixed, names.before_mlp)
    elif names.before_mlp:
        rows = norm(x, names.before_mlp)
    inner = norm(feed_forward(b, rows, layer), names.after_mlp)
    return norm(ops.add(mixed, scaled(inner, shape.residual_factor)), names.of_layer)


def softcapped(logits: Node, softcap: float) -> Node:
    return scaled(ops.tanh(scaled(logits, 1 / softcap)), softcap) if softcap else logits
