"""Whisper's decoder writes the text of a window of sound: learned positions, layer norms, and in
each layer attention to the frames of the encoder between self-attention and feed-forward layer.

Reference: transformers, models/whisper/modeling_whisper.py and configuration_whisper.py; Whisper
(Radford 2022, arXiv 2212.04356). speech/whisper.py builds the encoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ouzel.backends.openvino.graph.activations import Activation, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.cross_attention import (
    CROSS_QUERIES,
    CrossShape,
    attend_to_frames,
    build_filling,
    join_heads,
)
from ouzel.backends.openvino.graph.mlp import MlpShape, plain_mlp
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.norms import Norm
from ouzel.backends.openvino.graph.position_table import PositionTable, add_positions
from ouzel.backends.openvino.graph.self_attention import AttentionShape, self_attention
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops
from ouzel.backends.openvino.speech_model import SpeechModel
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

ALIGNMENT_HEADS = "alignment_heads"  # a key of generation_config.json
PREFIX = "model."  # checkpoints have "model.decoder.", which `plain_names` shortens
NORM = Norm(1e-5, is_centred=True, has_bias=True)


@dataclass(frozen=True, kw_only=True)
class WhisperShape:
    """The sizes of one checkpoint's decoder."""

    vocab_size: int
    max_positions: int
    inner_size: int
    activation: Activation
    cross: CrossShape
    alignment_heads: tuple[tuple[int, int], ...]  # layer and head

    @classmethod
    def read(cls, config: HfConfig) -> "WhisperShape":
        size, num_heads = config.size("d_model"), config.size("decoder_attention_heads")
        if size % num_heads:
            raise ModelLoadError(
                f"config.json: d_model {size} is no multiple of decoder_attention_heads {num_heads}"
            )
        num_layers = config.size("decoder_layers")
        return cls(
            vocab_size=config.size("vocab_size"),
            max_positions=config.size("max_target_positions", 448),
            inner_size=config.size("decoder_ffn_dim"),
            activation=read_activation(config, "activation_function", "gelu"),
            cross=CrossShape(hidden_size=size, num_heads=num_heads, num_layers=num_layers),
            alignment_heads=read_alignment_heads(config, num_layers, num_heads),
        )

    @property
    def attention(self) -> AttentionShape:
        cross = self.cross
        return AttentionShape(
            hidden_size=cross.hidden_size,
            num_heads=cross.num_heads,
            num_kv_heads=cross.num_heads,
            head_dim=cross.head_dim,
            norm=NORM,
            scale=cross.head_dim**-0.5,
            qkv_bias=True,
            output_bias=True,
            key_has_bias=False,
            output_name="out_proj",
        )


def build(config: HfConfig, b: Builder) -> LanguageModel:
    shape = WhisperShape.read(config)
    size = shape.cross.hidden_size
    embedding = b.embedding(PREFIX + "embed_tokens", shape.vocab_size, size, is_head=True)
    if config.flag("scale_embedding", False):
        raise config.refuse("scale_embedding", "false")
    table = PositionTable(num_positions=shape.max_positions, name=PREFIX + "embed_positions")
    rows = add_positions(b, b.embed(embedding), table, size)
    queries = dict[int, Node]()
    for layer in range(shape.cross.num_layers):
        rows, queries[layer] = build_layer(b, rows, layer, shape)
    if shape.alignment_heads:
        joined = join_heads(queries, shape.alignment_heads, shape.cross.head_dim)
        b.graph.output(CROSS_QUERIES, joined)
    rows = b.norm(rows, PREFIX + "layer_norm", size, NORM)
    model = b.language_model(
        b.logits(rows, embedding),
        hidden_size=size,
        vocab_size=shape.vocab_size,
        max_positions=shape.max_positions,
    )
    return replace(model, speech=build_speech(b, shape))


def build_layer(b: Builder, rows: Node, layer: int, shape: WhisperShape) -> tuple[Node, Node]:
    """Returns the rows behind the layer, and the queries of its attention to the frames."""
    prefix, size = f"{PREFIX}layers.{layer}.", shape.cross.hidden_size
    own = b.norm(rows, prefix + "self_attn_layer_norm", size, NORM)
    mixed = self_attention(b, own, prefix + "self_attn.", layer, shape.attention, angles=None)
    rows = ops.add(rows, mixed)
    across = b.norm(rows, prefix + "encoder_attn_layer_norm", size, NORM)
    taken, query = attend_to_frames(b, across, prefix + "encoder_attn.", layer, shape.cross)
    rows = ops.add(rows, taken)
    if layer == shape.cross.num_layers - 1:
        rows = b.graph.sample_rows(rows)
    inner = b.norm(rows, prefix + "final_layer_norm", size, NORM)
    mlp = MlpShape(
        hidden_size=size,
        inner_size=shape.inner_size,
        activation=shape.activation,
        has_bias=True,
        names=("", "fc1", "fc2"),
        is_gated=False,
    )
    return ops.add(rows, plain_mlp(b, inner, prefix, mlp)), query


def build_speech(b: Builder, shape: WhisperShape) -> SpeechModel:
    other = b.for_graph(PREFIX, PREFIX)
    names = PREFIX + "layers.{layer}.encoder_attn."
    return SpeechModel(
        filling=build_filling(other, names, shape.cross, shape.alignment_heads),
        arrays=other.graph.arrays,
        num_alignment_heads=len(shape.alignment_heads),
        head_dim=shape.cross.head_dim,
    )


def read_alignment_heads(
    config: HfConfig, num_layers: int, num_heads: int
) -> tuple[tuple[int, int], ...]:
    """Returns layer and head of each alignment head.

    Without the list of the checkpoint these are all heads of the upper half of the layers, as in
    openai-whisper's model.py.
    """
    found: Sequence[Sequence[int]] = config.values.get(ALIGNMENT_HEADS) or [
        (layer, head) for layer in range(num_layers // 2, num_layers) for head in range(num_heads)
    ]
    heads = tuple((layer, head) for layer, head in found)
    if any(not (0 <= layer < num_layers and 0 <= head < num_heads) for layer, head in heads):
        raise ModelLoadError(
            f"generation_config.json: alignment_heads must be [layer, head] below "
            f"[{num_layers}, {num_heads}], found {found}"
        )
    return heads
