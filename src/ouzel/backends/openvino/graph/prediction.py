"""A layer behind the others predicts the token after the next (multi-token prediction).

Entry t is made of the hidden row of token t, which is what the head takes, and of token t+1's embedding:
x = projection(norm(embedding), norm(hidden row)); then a layer like those of the model with full attention, at
position t, and a norm. The model's own head makes logits for token t+2 of it. Where entries follow one another without
the model, the row that came of one is the hidden row of the next.

Source: the tensors of published checkpoints, as vLLM's qwen3_next_mtp.py and qwen3_5_mtp.py read them.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.decoder import DecoderShape, Head, Part, Predict, attention_of, decoder_layer
from ouzel.backends.openvino.graph.nodes import Node, scaled
from ouzel.backends.openvino.hf_config import HfConfig
from ouzel.backends.openvino.language_model import PredictionGraphs
from ouzel.backends.openvino.library import ops, ov
from ouzel.errors import ModelLoadError

PROJECTION = "mtp.fc"


def prediction_of(config: HfConfig, shape: DecoderShape, feed_forward: Part) -> Predict:
    """Returns what makes the graphs of a checkpoint whose tensors are called `mtp.`."""

    def predict(b: Builder, embedding: Node, logits_of: Head) -> PredictionGraphs:
        check(config, b)
        layer = b.beside(f"model.layers.{shape.num_layers}.", "mtp.layers.0.")
        rows = entries(layer, embedding, shape, feed_forward)
        return PredictionGraphs(
            head=head_graph(logits_of, shape.attention.hidden_size),
            layer=layer.graph.finish(rows, "hidden_rows"),
            arrays=layer.graph.arrays,
        )

    return predict


def check(config: HfConfig, b: Builder) -> None:
    """Raises ModelLoadError where the checkpoint has no such layer, or another one."""
    if not b.has(PROJECTION + ".weight"):
        raise ModelLoadError(f"mtp: the checkpoint has no layer that predicts further tokens ({PROJECTION}.weight)")
    if (number := config.integer("mtp_num_hidden_layers", 1)) != 1:
        raise ModelLoadError(f"config.json: mtp_num_hidden_layers must be 1 for --mtp, found {number}")
    if config.flag("mtp_use_dedicated_embeddings", False):
        raise ModelLoadError("config.json: mtp_use_dedicated_embeddings must be false for --mtp, found true")


def head_graph(logits_of: Head, hidden_size: int) -> ov.Model:
    rows = ops.parameter([-1, hidden_size], ov.Type.f32)
    rows.output(0).set_names({"hidden_rows"})
    logits = ops.result(logits_of(rows))
    logits.output(0).set_names({"logits"})
    return ov.Model([logits], [rows], "ouzel head")


def entries(b: Builder, embedding: Node, shape: DecoderShape, feed_forward: Part) -> Node:
    """Returns the sampled rows, [S, hidden size]."""
    size = shape.attention.hidden_size
    hidden = b.graph.input("hidden_rows", [-1, size], ov.Type.f32)
    embedded = scaled(b.embedded(embedding), shape.embedding_factor)
    halves = [
        b.norm(embedded, "mtp.pre_fc_norm_embedding", size, shape.norm),
        b.norm(hidden, "mtp.pre_fc_norm_hidden", size, shape.norm),
    ]
    rows = b.linear(ops.concat(halves, -1), PROJECTION, 2 * size, size)
    last = replace(shape, num_layers=shape.num_layers + 1)
    rows = decoder_layer(b, rows, shape.num_layers, last, (attention_of(b, last), feed_forward))
    return b.norm(rows, "mtp.norm", size, shape.norm)
