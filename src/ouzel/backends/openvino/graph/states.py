"""Recurrent layers keep their states in tables `state.<kind>.<layer>`, [slots, ...], beside the KV
cache.

The runtime has an operation for each kind of state, of its CPU plugin and in no opset: their names
and attributes may change with a version of it, so that each is held against numpy before a model is
served (state_check.py). They read the first slot of a sequence and write its second, which may be
the same.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, empty
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import internal_operations, ov
from ouzel.errors import ModelLoadError


def state_table(graph: PagedGraph, kind: str, layer: int, *shape: int) -> Node:
    return graph.input(f"state.{kind}.{layer}", [-1, *shape], ov.Type.f32)


def causal_conv(
    graph: PagedGraph,
    rows: Node,
    layer: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None = None,
) -> Node:
    """A channel's sum over its last K values, the present one included; [T, C], `weight` [C, 1, K],
    `bias` [C].

    The state is those K values, [slots, C, K].
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
    """Mamba-2: a head's state S decays with the step, takes the value in, and is read; [T, heads,
    head_dim].

    S = exp(rate step) S + step x b^T;  returns S c. `heads` are x, [T, heads, head_dim], and b and
    c, [T, groups, state_size], each for as many heads one after the other; `step` is [T, heads],
    `rate` [heads] and not positive. `table` is [slots, heads, head_dim, state_size]; `paging` is
    the graph's `state_paging`, or says likewise which rows and slots a sequence has. Source:
    transformers, models/mamba2/modeling_mamba2.py.
    """
    x, into, out = heads
    return operation("PagedSelectiveSSM", [rate, step, into, x, out, table, *paging])


def operation(
    name: str, inputs: list[Node], **attributes: Any
) -> Node:  # Any: as the operation has them
    """Makes an operation of the CPU plugin, with the attributes whose names end like these.

    Raises ModelLoadError where the runtime does not have it, or has another one of this name.
    """
    outputs = [each if isinstance(each, ov.Output) else each.output(0) for each in inputs]
    try:
        node = internal_operations().create(name, outputs)
    except RuntimeError as error:
        raise ModelLoadError(
            f"the operation {name}, of which the model consists, is not to be had: {error}"
        ) from error
    for ending, value in attributes.items():
        keys = [key for key in node.get_attributes() if key.endswith(ending)]
        if len(keys) != 1:
            raise ModelLoadError(
                f"the operation {name} of this version of OpenVINO has no attribute {ending}"
            )
        node.set_attribute(keys[0], value)
    return node.output(0)
