"""Builds operations of recurrent layers, which keep their states in tables beside the KV cache.

The tables are inputs `state.<kind>.<layer>`, [slots, ...]. The runtime's CPU plugin has an
operation for each kind of state, which is in no opset: their names and attributes may change with
its version. So each operation is compared with numpy before a model is served (state_check.py). An
operation reads the first slot of a sequence and writes its second, which may be the same.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, empty
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import internal_operations, ov
from ouzel.errors import ModelLoadError


def state_table(graph: PagedGraph, kind: str, layer: int, *shape: int) -> Node:
    """Adds the table of states as an input of the graph."""
    return graph.input(f"state.{kind}.{layer}", [-1, *shape], ov.Type.f32)


def causal_conv(
    graph: PagedGraph,
    rows: Node,
    layer: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None = None,
) -> Node:
    """Computes a causal convolution of rows [T, C]: a sum over each channel's last K values.

    The present value is one of the K values. `weight` is [C, 1, K], `bias` [C]; the state has the K
    values, [slots, C, K].
    """
    channels, _, kernel_size = weight.shape
    table = state_table(graph, "conv", layer, channels, kernel_size)
    biases = empty(np.float32) if bias is None else graph.array(bias)
    return operation(
        "PagedCausalConv1D", [rows, table, graph.array(weight), biases, *graph.state_paging]
    )


def selective_scan(
    heads: tuple[Node, Node, Node], step: Node, rate: Node, table: Node, paging: tuple[Node, ...]
) -> Node:
    """Computes Mamba-2's scan: a state decays, takes a value in, and is read; returns [T, heads,
    head_dim].

    S = exp(rate step) S + step x b^T; the result is S c. `heads` are x, [T, heads, head_dim], and b
    and c, [T, groups, state_size], each for as many heads, one after the other. `step` is [T,
    heads], `rate` [heads] and not positive. `table` is [slots, heads, head_dim, state_size].
    `paging` is the graph's `state_paging`, or other rows and slots in this form. Source:
    transformers, models/mamba2/modeling_mamba2.py.
    """
    x, into, out = heads
    return operation("PagedSelectiveSSM", [rate, step, into, x, out, table, *paging])


# Any: attributes have the types that the operation has for them.
def operation(name: str, inputs: list[Node], **attributes: Any) -> Node:
    """Makes an operation of the CPU plugin; attributes are given by the ends of their names.

    Raises ModelLoadError if the runtime lacks the operation or one of the attributes.
    """
    outputs = [each if isinstance(each, ov.Output) else each.output(0) for each in inputs]
    try:
        node = internal_operations().create(name, outputs)
    except RuntimeError as error:
        raise ModelLoadError(
            f"OpenVINO lacks the operation {name}, which the model needs: {error}"
        ) from error
    for ending, value in attributes.items():
        keys = [key for key in node.get_attributes() if key.endswith(ending)]
        if len(keys) != 1:
            raise ModelLoadError(
                f"the operation {name} of this version of OpenVINO has no attribute {ending}"
            )
        node.set_attribute(keys[0], value)
    return node.output(0)
