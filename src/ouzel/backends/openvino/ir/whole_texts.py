"""Loads the IR of an encoder, or of a decoder without a cache, that gives hidden rows or logits.

Optimum exports it with `--task feature-extraction` or `text-classification`. Its graph takes texts
as padded rows, [texts, tokens]. Here it becomes a graph with the inputs of Ouzel's own encoders,
whose rows stand one after another: the graph pads the rows itself, and its hidden rows come back
without the padding.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ouzel.backends.openvino.encoder_model import EncoderModel
from ouzel.backends.openvino.graph.nodes import Node, gather, integers, put_in_place, real
from ouzel.backends.openvino.ir.graphs import read_graph, refuse_unreadable
from ouzel.backends.openvino.ir.text import TEXT_FILE
from ouzel.backends.openvino.library import ops, ov
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError

_ADVICE = (
    "It must be an encoder as `optimum-cli export openvino --task feature-extraction` or "
    "`text-classification` makes it"
)
_STATE = 'type="ReadValue"'  # a sign of a decoder with a cache
# outputs with hidden rows; token_embeddings if Optimum exports by sentence-transformers
_ROWS = ("last_hidden_state", "token_embeddings")
_LOGITS = "logits"
_CLASSIFIES = "ForSequenceClassification"
# Used for a graph with logits if config.json has another key for the hidden size; the size only
# decides the groups of quantised activations.
_HIDDEN_SIZE = 64
_SHOWN = -1.0  # a limit between the mask of a seen token, 0, and the mask of others, -1e9

# In these families positions count from the padding token's id plus one, so that a text must be
# shorter than the table of positions.
_COUNTS_FROM_PADDING = frozenset(
    {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "roberta-prelayernorm"}
)


def reads_whole_texts(directory: Path, architecture: str) -> bool:
    """Tells whether the graph is such an encoder, by its outputs.

    Reads the text of the XML file, so that nothing is loaded for other models.
    """
    try:
        text = (directory / TEXT_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if _STATE in text:
        return False
    return any(f'"{name}' in text or f",{name}" in text for name in _ROWS) or architecture.endswith(
        _CLASSIFIES
    )


def load_whole_texts(core: ov.Core, directory: Path, config: HfConfig) -> EncoderModel:
    """Loads the encoder. Raises ModelLoadError for every fault that the user can mend."""
    path = directory / TEXT_FILE
    with refuse_unreadable(path, _ADVICE):
        model = read_graph(core, path)
        output = _find_output(model.graph, path)
        inputs = _Inputs.of(model.graph, padding_id=_padding_id(config))
        for name, value in inputs.padded.items():
            put_in_place(model.graph.input(name), value)
        value = output.value if output.is_logits else _without_padding(output.value, inputs.rows)
        result = ops.result(ops.convert(value, ov.Type.f32))
        result.output(0).set_names({"scores" if output.is_logits else "hidden_rows"})
        graph = ov.Model(
            [result], [each for each in inputs.parameters if _is_read(each)], "ouzel.ir_encoder"
        )
    return EncoderModel(
        graph=graph,
        arrays=[model.weights],
        ropes={},
        hidden_size=config.size("hidden_size", _HIDDEN_SIZE) if output.is_logits else output.size,
        vocab_size=config.size("vocab_size"),
        max_positions=_max_positions(config),
        num_labels=output.size if output.is_logits else 0,
        weights="ir",
        mappings=(model.mapping,),
    )


@dataclass(frozen=True)
class _Output:
    value: Node  # [texts, tokens, size], or for logits [texts, size]
    size: int
    is_logits: bool


def _find_output(graph: ov.Model, path: Path) -> _Output:
    """Returns the hidden rows, or else the logits. Raises ModelLoadError if there are neither.

    Hidden rows come first, since a graph may give pooled vectors beside them.
    """
    outputs = [
        _Output(port.get_node().input_value(0), _find_size(port), _LOGITS in port.get_names())
        for port in graph.outputs
    ]
    ranks = [len(port.get_partial_shape()) for port in graph.outputs]
    for needed_rank, is_logits in ((3, False), (2, True)):
        for output, rank in zip(outputs, ranks, strict=True):
            if rank == needed_rank and output.is_logits == is_logits and output.size:
                return output
    names = ", ".join(port.get_any_name() for port in graph.outputs)
    raise ModelLoadError(
        f"{path} cannot be served: an output must be {' or '.join(_ROWS)} of each token, or "
        f"{_LOGITS} of each text, found {names}"
    )


def _find_size(port: Node) -> int:
    """Returns the length of the last axis, 0 if the graph leaves it open."""
    shape = port.get_partial_shape()
    size = shape[len(shape) - 1]
    return size.get_length() if size.is_static else 0


@dataclass(frozen=True)
class _Inputs:
    """The inputs of Ouzel's encoders, and the padded values that replace the graph's own
    inputs.
    """

    parameters: list[Node]
    padded: dict[str, Node]
    rows: Node

    @classmethod
    def of(cls, graph: ov.Model, *, padding_id: int) -> "_Inputs":
        """Makes the inputs. Raises ModelLoadError for an input of the graph that Ouzel
        cannot fill.
        """
        token_ids, types, positions = (
            _parameter(name, [-1], ov.Type.i64)
            for name in ("input_ids", "token_types", "position_ids")
        )
        places = _parameter("padded_rows", [-1, -1], ov.Type.i32)
        rows = _parameter("rows", [-1], ov.Type.i32)
        mask = _parameter("mask", [-1, 1, 1, -1], ov.Type.f32)
        is_shown = ops.greater(ops.squeeze(mask, integers(1, 2)), real(_SHOWN))
        padding = ops.constant(np.int64(padding_id))
        values = {
            "input_ids": ops.select(is_shown, gather(token_ids, places), padding),
            "attention_mask": is_shown,
            "token_type_ids": gather(types, places),
            "position_ids": gather(positions, places),
        }
        padded = {}
        for port in graph.inputs:
            name = next((name for name in values if name in port.get_names()), "")
            if not name:
                raise ModelLoadError(f"the graph has an unknown input, {port.get_any_name()}")
            padded[name] = ops.convert(values[name], port.get_element_type())
        return cls([token_ids, types, positions, places, rows, mask], padded, rows)


def _parameter(name: str, shape: list[int], dtype: ov.Type) -> Node:
    parameter = ops.parameter(shape, dtype, name=name)
    parameter.output(0).set_names({name})
    return parameter


def _is_read(parameter: Node) -> bool:
    return bool(parameter.output(0).get_target_inputs())


def _without_padding(padded: Node, rows: Node) -> Node:
    """Turns [texts, tokens, values] into [rows of all texts, values]."""
    size = padded.get_partial_shape()[2].get_length()
    return gather(ops.reshape(padded, integers(-1, size), False), rows)


def _padding_id(config: HfConfig) -> int:
    value = config.values.get("pad_token_id")
    return value if isinstance(value, int) else 0


def _max_positions(config: HfConfig) -> int:
    # Older nomic-bert and T5 have the other key.
    key = "max_position_embeddings" if config.has("max_position_embeddings") else "n_positions"
    if not config.has(key):
        raise ModelLoadError("config.json: max_position_embeddings or n_positions is missing")
    positions = config.size(key)
    is_rotary = config.text("position_embedding_type", "absolute") == "rotary"
    if is_rotary or config.model_type not in _COUNTS_FROM_PADDING:
        return positions
    return max(1, positions - config.integer("pad_token_id", 1) - 1)
