"""Turns a stateful language model with scaled-dot-product attention into one with Ouzel's inputs.

OpenVINO's own transformation turns the states into a paged KV cache. Positions stay an input
(`position_ids`), from which the graph computes angles. States of recurrent layers become tables
with inputs of their own (`la.*`), which are renamed. Logits come as [S, 1, vocabulary].
"""

from pathlib import Path

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.ir.graphs import add_input
from ouzel.backends.openvino.library import ops, ov, paged_attention_transformation
from ouzel.backends.openvino.runners.state_tables import STATE_PREFIX
from ouzel.errors import ModelLoadError

# operations after the output layer: a bias, a soft cap
BEHIND_OUTPUT_LAYER = {"Add", "Convert", "Divide", "Multiply", "Reshape", "Tanh", "Transpose"}
STATE_INPUTS = {
    "la.block_indices": "state_slots",
    "la.block_indices_begins": "state_slots_begins",
    "la.cache_interval": "state_interval",
}


def make_paged(graph: ov.Model, path: Path) -> None:
    """Changes the graph in place; errors name it by `path`.

    Raises ModelLoadError, and RuntimeError from OpenVINO.
    """
    paged_attention_transformation(graph)
    refuse_fixed_positions(graph, path)
    rename_state_inputs(graph)
    gather_sampled_rows(graph)


def find_vocab_size(graph: ov.Model) -> int | None:
    """Returns the number of logits in a row, None if the graph leaves it open."""
    logits_shape = graph.output(0).get_partial_shape()
    size = logits_shape[len(logits_shape) - 1]
    return size.get_length() if size.is_static else None


def refuse_fixed_positions(graph: ov.Model, path: Path) -> None:
    """Raises ModelLoadError for a graph that computes angles without `position_ids`.

    Such a graph counts tokens by itself, one a step, as in Optimum's export of LFM2: all tokens of
    a prompt would have the same position.
    """
    is_rotary = any(node.get_type_name() in {"Sin", "Cos"} for node in graph.get_ops())
    inputs = [port for port in graph.inputs if "position_ids" in port.get_names()]
    if is_rotary and not any(port.get_target_inputs() for port in inputs):
        raise ModelLoadError(
            f"{path} cannot be served: position_ids must be an input of its graph, which computes "
            "positions by itself; serve the safetensors checkpoint instead"
        )


def rename_state_inputs(graph: ov.Model) -> None:
    """Gives the inputs for states the names that they have in Ouzel's own graphs."""
    for parameter in graph.get_parameters():
        name = parameter.output(0).get_any_name()
        if name == "la.past_lens":  # the same numbers as `past_lens`
            for port in parameter.output(0).get_target_inputs():
                port.replace_source_output(graph.input("past_lens"))
            graph.remove_parameter(parameter)
        elif name in STATE_INPUTS:
            parameter.output(0).set_names({STATE_INPUTS[name]})
        elif "_state_table." in name:
            kind, _, number = name.partition("_state_table.")
            parameter.output(0).set_names({f"{STATE_PREFIX}{kind}.{number}"})


def gather_sampled_rows(graph: ov.Model) -> None:
    """Gathers the rows of the input `sampled_rows` before the output layer.

    If the output layer is not found, the gather stands after it.
    """
    rows = add_input(graph, "sampled_rows", [-1], ov.Type.i64)
    port = output_layer_input(graph.output(0).get_node())
    gathered = ops.gather(port.get_source_output(), rows, ops.constant(0, ov.Type.i64))
    port.replace_source_output(gathered.output(0))
    graph.validate_nodes_and_infer_types()


def output_layer_input(result: Node) -> Node:
    """Returns the port that takes the hidden states: of the last MatMul, else of the result."""
    node = result.input_value(0).get_node()
    while node.get_type_name() in BEHIND_OUTPUT_LAYER:
        node = node.input_value(0).get_node()
    return node.input(0) if node.get_type_name() == "MatMul" else result.input(0)
