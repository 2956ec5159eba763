"""Compares operations with states with numpy before a model is served.

The operations belong to the runtime's CPU plugin. Its next version may have another order of
inputs, another layout of states or other attributes under the same names. So the check runs each
operation of a graph by itself, in its own sizes, on two sequences: one begins, reading the slot of
zeros, and one continues.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.library import internal_operations, ops, ov
from ouzel.errors import ModelLoadError

Array = NDArray[np.float32]

NUM_SLOTS = 5
BEGINS = (0, 5, 6)  # first rows of the two sequences, and the end
SLOTS = (0, 1, 3, 2)  # the first sequence reads 0 and writes 1, the second reads 3 and writes 2
# the last five inputs: see `PagedGraph.state_paging`
PAGING = (BEGINS, SLOTS, (0, 2, 4), (0, 7), (2**30, 2**30))
LARGEST_ERROR = 1e-3  # relative; rounding explains 1e-6


@dataclass(frozen=True)
class Reference:
    """The computation of an operation in numpy.

    `compute` takes all inputs of one sequence, its state among them, and returns its rows and its
    next state.
    """

    compute: Callable[..., tuple[Array, Array]]
    state_index: int  # index of the input that is the table of states
    negative: int | None = None  # index of an input that must be negative, such as a decay
    positive: int | None = None  # index of an input that must be positive


def check_operations(core: ov.Core, graph: ov.Model, device: str) -> None:
    """Raises ModelLoadError if an operation of the graph computes other numbers than Ouzel expects.

    The message has the operation's name.
    """
    checked = set()
    for node in graph.get_ops():
        reference = REFERENCES.get(node.get_type_name())
        key = (node.get_type_name(), *(str(port.get_partial_shape()) for port in node.inputs()))
        if reference is not None and key not in checked:
            checked.add(key)
            check_operation(core, node, reference, device)


def check_operation(core: ov.Core, node: Node, reference: Reference, device: str) -> None:
    """Runs one operation on random inputs and compares its rows and states with the reference."""
    arrays = random_inputs(node, reference)
    states = arrays[reference.state_index]
    expected_states = states.copy()
    expected_rows = []
    for index, own in enumerate(map(slice, *zip(*pairwise(BEGINS), strict=True))):
        read, written = SLOTS[2 * index : 2 * index + 2]
        inputs = [array[own] if has_rows(node, i) else array for i, array in enumerate(arrays)]
        inputs[reference.state_index] = states[read]
        rows, expected_states[written] = reference.compute(*inputs)
        expected_rows.append(rows)
    rows = run(core, node, arrays, device)
    name = node.get_type_name()
    for part, found, expected in (
        ("rows", rows, np.concatenate(expected_rows)),
        ("states", states, expected_states),
    ):
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        if not error <= LARGEST_ERROR:  # written so that NaN fails
            raise ModelLoadError(
                f"the operation {name} of this runtime, OpenVINO {ov.get_version()}, gives {part} "
                f"with an error of {error:.0%}: the model's layers would be computed wrongly"
            )


def has_rows(node: Node, index: int) -> bool:
    return bool(node.get_input_partial_shape(index)[0].is_dynamic)


def random_inputs(node: Node, reference: Reference) -> list[Array]:
    """Returns random values for all inputs but PAGING: rows of tokens, rows of slots, or
    weights.
    """
    random = np.random.default_rng(0)
    arrays = []
    for index in range(node.get_input_size() - len(PAGING)):
        first, *others = list(node.get_input_partial_shape(index))
        num_rows = NUM_SLOTS if index == reference.state_index else BEGINS[-1]
        shape = (
            num_rows if first.is_dynamic else first.get_length(),
            *(each.get_length() for each in others),
        )
        array = random.normal(scale=0.5, size=shape).astype(np.float32)
        if index in (reference.negative, reference.positive):
            array = np.abs(array) if index == reference.positive else -np.abs(array)
        arrays.append(array)
    arrays[reference.state_index][0] = 0
    return arrays


def run(core: ov.Core, node: Node, arrays: list[Array], device: str) -> Array:
    """Runs the operation alone, with the attributes of the node, in f32.

    The operation writes the new states into the table among the arrays.
    """
    inputs = [*arrays, *(np.array(values, np.int32) for values in PAGING)]
    shapes = [node.get_input_partial_shape(index) for index in range(len(inputs))]
    parameters = [
        ops.parameter(shape, array.dtype) for shape, array in zip(shapes, inputs, strict=True)
    ]
    outputs = [parameter.output(0) for parameter in parameters]
    copy = internal_operations().create(node.get_type_name(), outputs, node.get_attributes())
    model = ov.Model([ops.result(copy.output(0))], parameters, "state_check")
    compiled = core.compile_model(model, device, {"INFERENCE_PRECISION_HINT": ov.Type.f32})
    request = compiled.create_infer_request()
    for index, array in enumerate(inputs):
        request.set_input_tensor(index, ov.Tensor(array, shared_memory=True))
    request.infer()
    return np.array(request.get_output_tensor(0).data)


def convolve(rows: Array, state: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Computes a causal convolution over the last K values of each channel, in numpy.

    `state` has the last K values before the rows, [C, K], and so has the state that it returns.
    """
    kernel_size = state.shape[1]
    values = np.concatenate([state, rows.T], axis=1)
    windows = np.stack(
        [values[:, end - kernel_size : end] for end in range(kernel_size + 1, values.shape[1] + 1)]
    )
    answers = (windows * weight[:, 0]).sum(axis=2) + (bias if bias.size else 0)
    return answers, values[:, -kernel_size:]


def apply_delta_rule(*inputs: Array) -> tuple[Array, Array]:
    """Computes the gated delta rule (`delta_rule`) in numpy; the state is [value heads, value_dim,
    key_dim].
    """
    query, key, value, state, log_decay, beta = inputs
    num_repeats = value.shape[1] // key.shape[1]
    query, key = (np.repeat(unit_length(heads), num_repeats, axis=1) for heads in (query, key))
    rows = []
    for q, k, v, decay, rate in zip(query, key, value, np.exp(log_decay), beta, strict=True):
        state = state * decay[:, None, None]
        missing = v - (state @ k[:, :, None])[:, :, 0]
        state = state + (rate[:, None] * missing)[:, :, None] * k[:, None]
        rows.append((state @ q[:, :, None])[:, :, 0] / np.sqrt(k.shape[-1]))
    return np.array(rows), state


def scan(*inputs: Array) -> tuple[Array, Array]:
    """Computes the selective scan (`selective_scan`) in numpy; the state is [heads, head_dim,
    state_size].
    """
    rate, steps, into, values, out, state = inputs
    num_repeats = values.shape[1] // into.shape[1]
    into, out = (np.repeat(groups, num_repeats, axis=1) for groups in (into, out))
    rows = []
    for step, b, x, c in zip(steps, into, values, out, strict=True):
        state = (
            state * np.exp(rate * step)[:, None, None]
            + (step[:, None] * x)[:, :, None] * b[:, None]
        )
        rows.append((state @ c[:, :, None])[:, :, 0])
    return np.array(rows), state


def unit_length(heads: Array) -> Array:
    lengths: Array = np.sqrt((heads**2).sum(axis=-1, keepdims=True) + np.float32(1e-6))
    return heads / lengths


REFERENCES = {
    "PagedCausalConv1D": Reference(convolve, state_index=1),
    "PagedGatedDeltaNet": Reference(apply_delta_rule, state_index=3, negative=4, positive=5),
    "PagedSelectiveSSM": Reference(scan, state_index=5, negative=0, positive=1),
}
