"""Builds the layer that predicts the token after the next (multi-token prediction).

Entry t takes the hidden row of token t, which the head takes too, and the embedding of token t+1 or
the features of its image: x = projection(norm(embedding), norm(hidden row)); then a layer like the
model's layers with full attention, at position t, and a norm. The model's own head turns the result
into the logits of token t+2. If further entries follow without the model, the result of an entry is
the hidden row of the next entry.

Sources: the tensors of published checkpoints, as vLLM's qwen3_next_mtp.py and qwen3_5_mtp.py read
them. DeepSeek's names follow vLLM's deepseek_mtp.py and SGLang's deepseek_nextn.py. These two
differ in the hidden row of a further entry: here it is the row after the norm, as in SGLang.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import (
    DecoderShape,
    Head,
    Part,
    Predict,
    decoder_layer,
    embedded_rows,
    make_attention,
)
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.language_model import PredictionGraphs
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


@dataclass(frozen=True)
class PredictionNames:
    """The names of the layer's tensors, and the key of config.json with the number of such
    layers.
    """

    count_key: str
    layer: str  # prefix of the names of its halves
    projection: str
    embedding_norm: str
    hidden_norm: str
    norm: str


QWEN_NAMES = PredictionNames(
    count_key="mtp_num_hidden_layers",
    layer="mtp.layers.0.",
    projection="mtp.fc",
    embedding_norm="mtp.pre_fc_norm_embedding",
    hidden_norm="mtp.pre_fc_norm_hidden",
    norm="mtp.norm",
)


def make_deepseek_names(num_layers: int) -> PredictionNames:
    """Returns the names in DeepSeek and GLM, whose prediction layer has the number after the last
    one.
    """
    layer = f"model.layers.{num_layers}."
    return PredictionNames(
        count_key="num_nextn_predict_layers",
        layer=layer,
        projection=layer + "eh_proj",
        embedding_norm=layer + "enorm",
        hidden_norm=layer + "hnorm",
        norm=layer + "shared_head.norm",
    )


def make_predictor(
    config: HfConfig,
    shape: DecoderShape,
    feed_forward: Part,
    *,
    names: PredictionNames = QWEN_NAMES,
    attention: Callable[[Builder, DecoderShape], Part] = make_attention,
) -> Predict:
    """Returns the function that makes the graphs for further tokens."""

    def predict(b: Builder, embedding: Matrix, logits_of: Head) -> PredictionGraphs:
        check(config, b, names)
        layer = b.for_graph(f"model.layers.{shape.num_layers}.", names.layer)
        last = replace(shape, num_layers=shape.num_layers + 1)
        rows = entries(layer, embedding, last, names, (attention(layer, last), feed_forward))
        return PredictionGraphs(
            head=head_graph(logits_of, shape.attention.hidden_size),
            layer=layer.graph.finish(rows, "hidden_rows"),
            ropes=layer.ropes,
            hidden_size=shape.attention.hidden_size,
            arrays=layer.graph.arrays,
        )

    return predict


def check(config: HfConfig, b: Builder, names: PredictionNames) -> None:
    """Raises ModelLoadError if the checkpoint has no prediction layer, or an unsupported layer."""
    if not b.has(names.projection + ".weight"):
        raise ModelLoadError(
            "mtp: the checkpoint has no layer that predicts further tokens "
            f"({names.projection}.weight)"
        )
    if (number := config.integer(names.count_key, 1)) != 1:
        raise ModelLoadError(f"config.json: {names.count_key} must be 1 for --mtp, found {number}")
    if config.flag("mtp_use_dedicated_embeddings", False):
        raise ModelLoadError(
            "config.json: mtp_use_dedicated_embeddings must be false for --mtp, found true"
        )


def head_graph(logits_of: Head, hidden_size: int) -> ov.Model:
    """Returns a graph with the head alone, from `hidden_rows` to `logits`."""
    rows = ops.parameter([-1, hidden_size], ov.Type.f32)
    rows.output(0).set_names({"hidden_rows"})
    logits = ops.result(logits_of(rows))
    logits.output(0).set_names({"logits"})
    return ov.Model([logits], [rows], "ouzel head")


def entries(
    b: Builder,
    embedding: Matrix,
    shape: DecoderShape,
    names: PredictionNames,
    halves: tuple[Part, Part],
) -> Node:
    """Returns the sampled rows, [S, hidden size]; the prediction layer is the last layer of the
    shape.
    """
    size = shape.attention.hidden_size
    hidden = b.graph.input("hidden_rows", [-1, size], ov.Type.f32)
    embedded = embedded_rows(b, b.embed(embedding), shape)
    normed = [
        b.norm(embedded, names.embedding_norm, size, shape.norm),
        b.norm(hidden, names.hidden_norm, size, shape.norm),
    ]
    rows = b.linear(ops.concat(normed, -1), names.projection, 2 * size, size)
    rows = decoder_layer(b, rows, shape.num_layers - 1, shape, halves)
    return b.norm(rows, names.norm, size, shape.norm)
